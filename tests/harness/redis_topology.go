package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Watched is a primary with two replicas, and three sentinels that watch it.
type Watched struct {
	Primary             *Redis
	Replicas, Sentinels []*Redis
}

// Master is what the sentinels call the primary.
const Master = "mymaster"

// StartWatched starts a [Watched]. args are added to the command line of the
// primary and the replicas.
func StartWatched(t testing.TB, args ...string) *Watched {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	w := &Watched{Primary: StartRedis(t, args...)}
	for range 2 {
		w.Replicas = append(w.Replicas, StartRedis(t, append([]string{"--replicaof", "127.0.0.1 " + w.Primary.Port()}, args...)...))
	}
	for _, replica := range w.Replicas {
		replica.AwaitInfo("replication", "master_link_status:up")
	}
	for range 3 {
		w.Sentinels = append(w.Sentinels, StartSentinel(t, w.Primary, 2))
	}
	for _, sentinel := range w.Sentinels {
		sentinel.AwaitInfo("sentinel", "slaves=2,sentinels=3")
	}
	return w
}

// Addresses are those of the sentinels.
func (w *Watched) Addresses() (addresses []string) {
	for _, sentinel := range w.Sentinels {
		addresses = append(addresses, sentinel.Addr)
	}
	return addresses
}

// AwaitPromotion waits until all sentinels have made a replica the primary.
func (w *Watched) AwaitPromotion(t testing.TB) {
	t.Helper()
	Eventually(t, "another is promoted", func() bool {
		for _, sentinel := range w.Sentinels {
			info, err := sentinel.Client.Info(context.Background(), "sentinel").Result()
			if err != nil || strings.Contains(info, "address="+w.Primary.Addr) {
				return false
			}
		}
		return true
	})
}

// StartSentinel starts a sentinel that watches a primary.
func StartSentinel(t testing.TB, primary *Redis, quorum int) *Redis {
	t.Helper()
	s := newRedis(t, &redis.Options{Protocol: 2})
	conf := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor %s 127.0.0.1 %s %d\n"+
		"sentinel down-after-milliseconds %[3]s 3000\nsentinel failover-timeout %[3]s 3000\n", s.Port(), s.dir, Master, primary.Port(), quorum)
	file := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command = []string{file, "--sentinel"}
	s.Start()
	return s
}

// StartCluster makes a cluster of three primaries, with as many replicas each;
// they come after the primaries, in their order: 3 and 6 are the replicas of 0.
// The i-th primary has the i-th third of the slots. args are added to the
// command line of every node.
func StartCluster(t testing.TB, replicas int, args ...string) (nodes []*Redis) {
	t.Helper()
	var buses []string
	for i := range 3 * (1 + replicas) {
		buses = append(buses, FreePort(t))
		nodes = append(nodes, StartRedis(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", buses[i], "--cluster-node-timeout", "4000", "--repl-diskless-sync-delay", "0",
		}, args...)...))
		if i < 3 {
			nodes[i].Do("CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		}
	}
	for i, node := range nodes[1:] {
		nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", node.Port(), buses[i+1])
	}
	for _, node := range nodes {
		node.awaitCluster(len(nodes))
	}
	for i, node := range nodes[3:] {
		node.Do("CLUSTER", "REPLICATE", nodes[i%3].Do("CLUSTER", "MYID"))
	}
	for _, node := range nodes[3:] {
		node.AwaitInfo("replication", "master_link_status:up")
	}
	return nodes
}

// slots is how many every cluster has.
const slots = 16384

// Third is which third of a cluster's slots has the key.
func (r *Redis) Third(key string) int {
	r.t.Helper()
	slot := int(r.Do("CLUSTER", "KEYSLOT", key).(int64))
	return min(2, slot*3/slots)
}

// awaitCluster waits until the node knows a complete cluster of n nodes.
func (r *Redis) awaitCluster(n int) {
	r.t.Helper()
	Eventually(r.t, "the cluster is complete", func() bool {
		info := r.Do("CLUSTER", "INFO").(string)
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:3") &&
			strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n))
	})
}

// AwaitInfo waits until a section of INFO holds text.
func (r *Redis) AwaitInfo(section, text string) {
	r.t.Helper()
	Eventually(r.t, "INFO says "+text, func() bool {
		return strings.Contains(r.Do("INFO", section).(string), text)
	})
}

// Reshard moves slots from one node of a cluster to another, with their keys.
func Reshard(t testing.TB, from, to *Redis, slots int) {
	t.Helper()
	Eventually(t, "the nodes agree about the slots", func() bool { // reshard wants that
		return exec.Command("redis-cli", "--cluster", "check", from.Addr).Run() == nil
	})
	out, err := exec.Command("redis-cli", "--cluster", "reshard", from.Addr, "--cluster-from", from.Do("CLUSTER", "MYID").(string),
		"--cluster-to", to.Do("CLUSTER", "MYID").(string), "--cluster-slots", fmt.Sprint(slots), "--cluster-yes").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
