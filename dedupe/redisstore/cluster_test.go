package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// keysOf returns keys of n events that the i-th third of the slots holds.
func keysOf(s *Store, nodes []*harness.Redis, i, n int) []string {
	var keys []string
	c := s.current.Load()
	for j := 0; len(keys) < n; j++ {
		key := dedupe.Key("shop", fmt.Sprintf("evt_%d", j), "")
		if nodes[0].Third(c.eventKey(key)) == i {
			keys = append(keys, key)
		}
	}
	return keys
}

// migrateSlot begins to move the slot of an event from one node to another.
func migrateSlot(s *Store, key string, from, to *harness.Redis) {
	slot := from.Do("cluster", "keyslot", s.current.Load().eventKey(key))
	to.Do("cluster", "setslot", slot, "importing", from.Do("cluster", "myid"))
	from.Do("cluster", "setslot", slot, "migrating", to.Do("cluster", "myid"))
}

// A node redirects what was sent to the wrong one, so nobody would notice but by
// the time that it takes, or when that one hangs.
func TestNothingIsSentToTheWrongNode(t *testing.T) {
	t.Parallel()
	nodes := harness.StartCluster(t, 0)
	s := open(t, Options{Addresses: []string{nodes[0].Addr}, Cluster: true})
	for range 3 {
		for i := range nodes {
			for _, key := range keysOf(s, nodes, i, 20) {
				claim(t, s, key, "own")
				if err := s.Complete(context.Background(), key, dedupe.Done{TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Bind(context.Background(), key, "value", time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := s.Release(context.Background(), key, hold("own")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, node := range nodes {
		if errors := node.Do("INFO", "errorstats").(string); strings.Contains(errors, "MOVED") {
			t.Errorf("%s had to redirect: %s", node.Addr, errors)
		}
	}
}
