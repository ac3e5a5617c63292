package redisstore

import (
	"fmt"

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
