package memstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestExpiredRecordsTakeNoMemory: they are dropped though nobody asks for them.
func TestExpiredRecordsTakeNoMemory(t *testing.T) {
	now := time.Unix(1_767_225_600, 0)
	s := New(func() time.Time { return now })
	ctx := context.Background()
	fill := func(from, to int, ttl time.Duration) {
		for i := from; i < to; i++ {
			key := fmt.Sprint("s:", i)
			if err := s.Complete(ctx, key, dedupe.Done{TTL: ttl}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Bind(ctx, key, "v", ttl); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0, 100, time.Hour)
	fill(100, 110, 3*time.Hour)
	now = now.Add(2 * time.Hour)
	if _, err := s.Lookup(ctx, "s:0"); err != nil {
		t.Fatal(err)
	}
	if len(s.events) != 10 || len(s.bindings) != 10 {
		t.Errorf("%d events and %d bindings are held, want the 10 that live", len(s.events), len(s.bindings))
	}
}
