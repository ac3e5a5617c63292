package memstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/storetest"
)

// clock is a time that passes only when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) Advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		c := &clock{now: time.Unix(1_767_225_600, 0)}
		s := memstore.New(c.Now)
		t.Cleanup(func() { s.Close() })
		return storetest.Harness{Store: s, Advance: c.Advance}
	})
}
