package redisstore

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// startCluster makes a cluster of three primaries, with as many replicas each;
// they come after the primaries, in their order. args are added to the command
// line of every node.
func startCluster(t *testing.T, replicas int, args ...string) []*server {
	t.Helper()
	var nodes []*server
	var buses []string
	for i := range 3 * (1 + replicas) {
		buses = append(buses, freePort(t))
		all := append([]string{"--cluster-enabled", "yes", "--cluster-port", buses[i], "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}, args...)
		nodes = append(nodes, startServer(t, all...))
		if i < 3 {
			nodes[i].do("cluster", "addslotsrange", i*16384/3, (i+1)*16384/3-1)
		}
	}
	for i, node := range nodes[1:] {
		nodes[0].do("cluster", "meet", "127.0.0.1", node.port, buses[i+1])
	}
	for _, node := range nodes {
		node.waitForCluster(len(nodes))
	}
	for i, node := range nodes[3:] {
		node.do("cluster", "replicate", nodes[i%3].do("cluster", "myid"))
	}
	for _, node := range nodes[3:] {
		node.waitForInfo("replication", "master_link_status:up")
	}
	return nodes
}

// waitForCluster waits until the node knows a complete cluster of n nodes.
func (s *server) waitForCluster(n int) {
	s.t.Helper()
	eventually(s.t, "the cluster is complete", func() error {
		info := s.do("cluster", "info").(string)
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:3") ||
			!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n)) {
			return errors.New("not yet")
		}
		return nil
	})
}

// waitForInfo waits until a section of INFO holds text.
func (s *server) waitForInfo(section, text string) {
	s.t.Helper()
	eventually(s.t, "INFO says "+text, func() error {
		if info := s.do("info", section).(string); !strings.Contains(info, text) {
			return errors.New(info)
		}
		return nil
	})
}

// keysOf returns keys of n events that the i-th third of the slots holds.
func keysOf(s *Store, nodes []*server, i, n int) []string {
	var keys []string
	c := s.current.Load()
	for j := 0; len(keys) < n; j++ {
		key := dedupe.Key("shop", fmt.Sprintf("evt_%d", j), "")
		slot := nodes[0].do("cluster", "keyslot", c.eventKey(key)).(int64)
		if slot >= int64(i)*16384/3 && slot < int64(i+1)*16384/3 {
			keys = append(keys, key)
		}
	}
	return keys
}

// migrateSlot begins to move the slot of an event from one node to another.
func migrateSlot(s *Store, key string, from, to *server) {
	slot := from.do("cluster", "keyslot", s.current.Load().eventKey(key))
	to.do("cluster", "setslot", slot, "importing", from.do("cluster", "myid"))
	from.do("cluster", "setslot", slot, "migrating", to.do("cluster", "myid"))
}

// reshard moves slots from one node to another, with their keys.
func reshard(t *testing.T, from, to *server, slots int) {
	t.Helper()
	out, err := exec.Command("redis-cli", "--cluster", "reshard", from.addr(), "--cluster-from", from.do("cluster", "myid").(string),
		"--cluster-to", to.do("cluster", "myid").(string), "--cluster-slots", fmt.Sprint(slots), "--cluster-yes").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
