package filestore

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// callers is how many deliveries the benchmarks have under way at once.
const callers = 50

func BenchmarkClaimCompleteParallel(b *testing.B) {
	for _, mode := range []Sync{EverySec, Always} {
		b.Run(mode.String(), func(b *testing.B) { benchClaimComplete(b, mode, 0) })
		b.Run(mode.String()+"_1M_held", func(b *testing.B) { benchClaimComplete(b, mode, 1_000_000) })
	}
}

func benchClaimComplete(b *testing.B, mode Sync, held int) {
	s := benchStore(b, mode)
	fill(b, s, held)
	var n atomic.Int64
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := strconv.FormatInt(n.Add(1), 10)
			claimComplete(b, s, "paymos:evt_4f7a2c9e81b35d60a2c4_"+id, "boot7f3a91c2-"+id)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkClaimCompleteAlone(b *testing.B) {
	s := benchStore(b, EverySec)
	for i := range b.N {
		id := strconv.Itoa(i)
		claimComplete(b, s, "paymos:evt_4f7a2c9e81b35d60a2c4_"+id, "boot7f3a91c2-"+id)
	}
}

func BenchmarkDuplicateParallel(b *testing.B) {
	s := benchStore(b, EverySec)
	fill(b, s, 100_000)
	var n atomic.Int64
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := strconv.FormatInt(n.Add(1)%100_000, 10)
			r, err := s.Claim(context.Background(), "fill:"+id, benchHold("t"), true)
			if err != nil || r.State != dedupe.Completed {
				b.Error(r, err)
			}
		}
	})
}

// BenchmarkMemoryPerEvent reports what a finished event takes beside its id.
func BenchmarkMemoryPerEvent(b *testing.B) {
	for b.Loop() {
		const n = 1_000_000
		before := heap()
		s := benchStore(b, EverySec)
		fill(b, s, n)
		s.syncWritten()
		b.ReportMetric(float64(heap()-before)/n, "B/event")
		b.ReportMetric(float64(s.Stats().Bytes)/n, "diskB/event")
		s.Close()
		runtime.KeepAlive(s)
	}
}

func BenchmarkOpenWithMillionEvents(b *testing.B) {
	s := benchStore(b, EverySec)
	fill(b, s, 1_000_000)
	path := s.disk.path("")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func benchStore(b *testing.B, mode Sync) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{Sync: mode})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func benchHold(token string) dedupe.Hold {
	return dedupe.Hold{Token: token, Lease: 30 * time.Second, TTL: 168 * time.Hour}
}

func claimComplete(b *testing.B, s *Store, key, token string) {
	ctx := context.Background()
	r, err := s.Claim(ctx, key, benchHold(token), true)
	if err != nil || !r.OwnedBy(token) {
		b.Error(r, err)
	}
	if err := s.Complete(ctx, key, dedupe.Done{Mark: 7, TTL: 168 * time.Hour}); err != nil {
		b.Error(err)
	}
}

// fill finishes n events from many callers, whatever the store's mode.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	mode := s.mode
	s.SetSync(EverySec)
	defer s.SetSync(mode)
	done := make(chan struct{})
	for w := range 200 {
		go func() {
			for i := w; i < n; i += 200 {
				id := strconv.Itoa(i)
				claimComplete(b, s, "fill:"+id, "boot7f3a91c2-"+id)
			}
			done <- struct{}{}
		}()
	}
	for range 200 {
		<-done
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
