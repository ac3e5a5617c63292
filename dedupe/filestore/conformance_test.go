package filestore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		f := newFixture(t)
		return storetest.Harness{Store: f.Store, Advance: f.clock.advance}
	})
}

func TestContractHoldsWithSyncAlways(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		f := newFixture(t)
		f.SetSync(Always)
		return storetest.Harness{Store: f.Store, Advance: f.clock.advance}
	})
}

func TestContractHoldsOverReopening(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		f := newFixture(t)
		return storetest.Harness{Store: &reopening{f: f}, Advance: f.clock.advance}
	})
}

// reopening is a store that is opened anew before every call. It carries the
// ends of the leases over, which opening alone would restart.
type reopening struct {
	mu    sync.Mutex
	f     *fixture
	calls int
}

func (r *reopening) fresh() (*Store, func()) {
	r.mu.Lock()
	old := r.f.Store
	if r.calls++; r.calls%2 == 0 {
		r.f.crash()
	} else {
		r.f.reopen()
	}
	r.f.tick()
	since := r.f.Store.opened.Sub(old.opened)
	for _, part := range old.index.active.parts {
		for h, was := range part.m {
			if e, ok := r.f.index.active.get(h); ok {
				e.leaseEnd = was.leaseEnd - since
				r.f.index.active.set(h, e)
			}
		}
	}
	return r.f.Store, r.mu.Unlock
}

func (r *reopening) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	s, done := r.fresh()
	defer done()
	return s.Claim(ctx, key, h, takeover)
}

func (r *reopening) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	s, done := r.fresh()
	defer done()
	return s.Renew(ctx, key, h)
}

func (r *reopening) Complete(ctx context.Context, key string, d dedupe.Done) error {
	s, done := r.fresh()
	defer done()
	return s.Complete(ctx, key, d)
}

func (r *reopening) Release(ctx context.Context, key string, h dedupe.Hold) error {
	s, done := r.fresh()
	defer done()
	return s.Release(ctx, key, h)
}

func (r *reopening) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	s, done := r.fresh()
	defer done()
	return s.Doubt(ctx, key, h)
}

func (r *reopening) Lookup(ctx context.Context, key string) (dedupe.Record, error) {
	s, done := r.fresh()
	defer done()
	return s.Lookup(ctx, key)
}

func (r *reopening) Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	s, done := r.fresh()
	defer done()
	return s.Bind(ctx, key, value, ttl)
}

func (r *reopening) Close() error { return r.f.Close() }
