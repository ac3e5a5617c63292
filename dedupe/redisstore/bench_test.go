package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// BenchmarkClaimComplete is one event from its claim to its end, by callers at
// once: as the store does it, and with a pipeline for each caller.
func BenchmarkClaimComplete(b *testing.B) {
	for _, callers := range []int{2, 50} {
		for _, how := range []string{"combined", "plain"} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, how), func(b *testing.B) {
				s := openAt(b, harness.StartRedis(b).Addr)
				if how == "plain" {
					plain(s)
				}
				benchmark(b, s, callers)
			})
		}
	}
}

// plain makes every caller send its own batch at once.
func plain(s *Store) {
	c := s.current.Load()
	c.batches.underWay = -1 << 30
}

func benchmark(b *testing.B, s *Store, callers int) {
	var next atomic.Int64
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for pb.Next() {
			id := fmt.Sprintf("evt_%d", next.Add(1))
			key := dedupe.Key("bench", id, "")
			if r, err := s.Claim(ctx, key, hold(id), true); err != nil || !r.OwnedBy(id) {
				b.Errorf("claim: %+v, %v", r, err)
				return
			}
			if err := s.Complete(ctx, key, dedupe.Done{Mark: 1, TTL: time.Hour}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
