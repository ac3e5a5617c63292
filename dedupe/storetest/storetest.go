// Package storetest is the conformance suite of [dedupe.Store]: one table of
// every state and every operation, and what happens when callers race. Each
// store runs it.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// Harness is a store under test and a way to let its time pass.
type Harness struct {
	// Store is empty at first.
	Store dedupe.Store
	// Advance lets d pass on the store's clock.
	Advance func(d time.Duration)
}

// Run runs the suite. open gives each test a store of its own and closes it
// when the test ends.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Run("Transitions", func(t *testing.T) { testTransitions(t, open(t)) })
	t.Run("Claims", func(t *testing.T) { testClaims(t, open(t)) })
	t.Run("Leases", func(t *testing.T) { testLeases(t, open(t)) })
	t.Run("OtherLeases", func(t *testing.T) { testOtherLeases(t, open(t)) })
	t.Run("Expiry", func(t *testing.T) { testExpiry(t, open(t)) })
	t.Run("Keys", func(t *testing.T) { testKeys(t, open(t)) })
	t.Run("Bindings", func(t *testing.T) { testBindings(t, open(t)) })
	t.Run("Races", func(t *testing.T) { testRaces(t, open(t)) })
	t.Run("Lattice", func(t *testing.T) { testDoneIsAbsorbing(t, open(t)) })
}

// The times of the suite: far enough apart that a real store's own pace
// (milliseconds) never decides a comparison.
const (
	lease = 20 * time.Second
	ttl   = 2 * time.Hour
	slack = 5 * time.Second
)

func hold(token string) dedupe.Hold {
	return dedupe.Hold{Token: token, Lease: lease, TTL: ttl}
}

// heldAs is h with what the store's record says of it.
func heldAs(h dedupe.Hold, r dedupe.Record) dedupe.Hold {
	h.Attempt, h.Doubted = r.Attempt, r.Doubted
	return h
}

// suite wraps a harness with calls that fail the test on an error.
type suite struct {
	t *testing.T
	Harness
}

func (s suite) claim(key, token string, takeover bool) dedupe.Record {
	s.t.Helper()
	r, err := s.Store.Claim(context.Background(), key, hold(token), takeover)
	s.must(err)
	return r
}

// own claims a free event and returns the hold on it.
func (s suite) own(key, token string) dedupe.Hold {
	s.t.Helper()
	r := s.claim(key, token, true)
	if !r.OwnedBy(token) {
		s.t.Fatalf("claim of a free event: got %+v, want it owned by %q", r, token)
	}
	return heldAs(hold(token), r)
}

func (s suite) renew(key string, h dedupe.Hold) bool {
	s.t.Helper()
	ok, err := s.Store.Renew(context.Background(), key, h)
	s.must(err)
	return ok
}

func (s suite) complete(key string, mark uint16) {
	s.t.Helper()
	s.must(s.Store.Complete(context.Background(), key, dedupe.Done{Mark: mark, TTL: ttl}))
}

func (s suite) release(key string, h dedupe.Hold) {
	s.t.Helper()
	s.must(s.Store.Release(context.Background(), key, h))
}

func (s suite) doubt(key string, h dedupe.Hold) {
	s.t.Helper()
	s.must(s.Store.Doubt(context.Background(), key, h))
}

func (s suite) lookup(key string) dedupe.Record {
	s.t.Helper()
	r, err := s.Store.Lookup(context.Background(), key)
	s.must(err)
	return r
}

func (s suite) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// plain is r without its times, which two stores never measure alike.
func plain(r dedupe.Record) dedupe.Record {
	r.LeaseLeft, r.Left = 0, 0
	return r
}

// near fails the test unless got is within slack below want.
func (s suite) near(what string, got, want time.Duration) {
	s.t.Helper()
	if got > want || got < want-slack {
		s.t.Errorf("%s is %v, want %v", what, got, want)
	}
}
