package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// mutant is a deliberate mistake, in the store or in the handler.
type mutant struct {
	store  func(dedupe.Store) dedupe.Store
	policy func(*dedupe.Policy)

	completesFirst       bool
	acknowledgesInFlight bool
	forwardsWaiting      bool
	gatewayClock         bool

	// forgets is no mistake of ours: the store loses all it knows, now and then.
	forgets bool
}

// redeliver makes every history one of the default policy, which promises most.
func redeliver(p *dedupe.Policy) { p.Hold, p.ForwardOnError = false, false }

// TestHistoriesFindMutants: the histories would find these mistakes, and the
// invariant that finds them is the one that they break.
func TestHistoriesFindMutants(t *testing.T) {
	inStore := func(s func(dedupe.Store) dedupe.Store) mutant { return mutant{store: s, policy: redeliver} }
	for _, m := range []struct {
		name   string
		breaks string
		mutant mutant
	}{
		{"renew ignores the token", "one at a time", inStore(func(s dedupe.Store) dedupe.Store { return renewsAnyones{s} })},
		{"release ignores the token", "one at a time", inStore(func(s dedupe.Store) dedupe.Store { return releasesAnyones{s} })},
		{"release deletes the record", "no repeat", inStore(func(s dedupe.Store) dedupe.Store { return newDeletes(s) })},
		{"takeover does not mark the doubt", "marks", inStore(func(s dedupe.Store) dedupe.Store { return forgetsDoubt{s} })},
		{"doubt is a release", "marks", inStore(func(s dedupe.Store) dedupe.Store { return doubtReleases{s} })},
		{"renew does not prolong", "one at a time", inStore(func(s dedupe.Store) dedupe.Store { return renewsNothing{s} })},
		{"complete is lost", "no repeat", inStore(func(s dedupe.Store) dedupe.Store { return completesNothing{s} })},
		{"the lease is judged by the gateway's clock", "one at a time", mutant{policy: redeliver, gatewayClock: true}},
		{"done is written before the upstream's answer", "no loss", mutant{policy: redeliver, completesFirst: true}},
		{"in flight is answered 2xx", "no loss", mutant{policy: redeliver, acknowledgesInFlight: true}},
		{"waiting copies are forwarded", "one at a time", mutant{policy: redeliver, forwardsWaiting: true}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 20_000; seed++ {
				for _, v := range live(t, seed, m.mutant, false).violations {
					if strings.HasPrefix(v, m.breaks) {
						t.Logf("found by seed %d: %s", seed, v)
						return
					}
				}
			}
			t.Error("not found")
		})
	}
}

// renewsAnyones lets everybody who says so own the event: no compare.
type renewsAnyones struct{ dedupe.Store }

func (s renewsAnyones) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	r, err := s.Lookup(ctx, key)
	if err != nil || r.State != dedupe.InFlight && r.State != dedupe.InDoubt {
		return false, err
	}
	if err := s.Release(ctx, key, dedupe.Hold{Token: r.Token, TTL: h.TTL}); err != nil {
		return false, err
	}
	_, err = s.Claim(ctx, key, h, true)
	return true, err
}

// releasesAnyones releases whatever is there: no compare.
type releasesAnyones struct{ dedupe.Store }

func (s releasesAnyones) Release(ctx context.Context, key string, h dedupe.Hold) error {
	r, err := s.Lookup(ctx, key)
	if err != nil {
		return err
	}
	h.Token = r.Token
	return s.Store.Release(ctx, key, h)
}

// deletes removes the record on release, whoever owns it. A record is removed
// by going on with another key.
type deletes struct {
	dedupe.Store
	mu    sync.Mutex
	times map[string]int
}

func newDeletes(s dedupe.Store) dedupe.Store { return &deletes{Store: s, times: make(map[string]int)} }

func (s *deletes) key(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(key, "/", s.times[key])
}

func (s *deletes) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	return s.Store.Claim(ctx, s.key(key), h, takeover)
}

func (s *deletes) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	return s.Store.Renew(ctx, s.key(key), h)
}

func (s *deletes) Complete(ctx context.Context, key string, d dedupe.Done) error {
	return s.Store.Complete(ctx, s.key(key), d)
}

func (s *deletes) Release(_ context.Context, key string, _ dedupe.Hold) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[key]++
	return nil
}

func (s *deletes) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	return s.Store.Doubt(ctx, s.key(key), h)
}

func (s *deletes) Lookup(ctx context.Context, key string) (dedupe.Record, error) {
	return s.Store.Lookup(ctx, s.key(key))
}

// forgetsDoubt takes a lapsed claim over without a mark.
type forgetsDoubt struct{ dedupe.Store }

func (s forgetsDoubt) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	r, err := s.Store.Claim(ctx, key, h, takeover)
	if r.OwnedBy(h.Token) {
		r.Doubted = false
	}
	return r, err
}

// doubtReleases ends a delivery in doubt as one that failed.
type doubtReleases struct{ dedupe.Store }

func (s doubtReleases) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	return s.Release(ctx, key, h)
}

// renewsNothing says that the lease was renewed.
type renewsNothing struct{ dedupe.Store }

func (s renewsNothing) Renew(context.Context, string, dedupe.Hold) (bool, error) { return true, nil }

// completesNothing says that the event is done.
type completesNothing struct{ dedupe.Store }

func (s completesNothing) Complete(ctx context.Context, key string, _ dedupe.Done) error {
	return nil
}
