package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// testClaims: who is told that it owns the event.
func testClaims(t *testing.T, h Harness) {
	s := suite{t, h}
	key := dedupe.Key("claims", "evt_1", "")
	first := s.claim(key, "a", true)
	if first.Attempt != 1 || first.Doubted || !first.OwnedBy("a") {
		t.Errorf("first claim: %+v", first)
	}
	if again := s.claim(key, "a", true); !again.OwnedBy("a") || again.Attempt != 1 {
		t.Errorf("a claim whose reply was lost, asked again: %+v, want still mine", again)
	}
	if other := s.claim(key, "b", true); other.OwnedBy("b") || other.State != dedupe.InFlight || other.Token != "a" {
		t.Errorf("a copy of an event in flight: %+v, want it to be a's", other)
	}
	s.release(key, heldAs(hold("a"), first))
	retry := s.claim(key, "b", false)
	if !retry.OwnedBy("b") || retry.Attempt != 2 || retry.Doubted {
		t.Errorf("retry after a failure: %+v", retry)
	}
	s.complete(key, 42)
	if done := s.claim(key, "c", true); done.State != dedupe.Completed || done.Mark != 42 {
		t.Errorf("a copy of a done event: %+v", done)
	}
}

// testLeases: what a lease keeps away, and when it is over.
func testLeases(t *testing.T, h Harness) {
	s := suite{t, h}
	key := dedupe.Key("leases", "evt_1", "")
	a := s.own(key, "a")
	s.near("the lease of a new claim", s.lookup(key).LeaseLeft, lease)
	s.Advance(lease / 2)
	s.near("the lease half-way", s.claim(key, "b", true).LeaseLeft, lease/2)
	if !s.renew(key, a) {
		t.Error("the owner could not renew")
	}
	s.near("the lease after renewing", s.lookup(key).LeaseLeft, lease)
	s.Advance(lease + slack)
	if r := s.claim(key, "b", false); r.OwnedBy("b") || r.LeaseLeft != 0 || r.Token != "a" {
		t.Errorf("a lapsed claim without takeover: %+v, want it a's and lapsed", r)
	}
	if !s.renew(key, a) {
		t.Error("a lapsed claim that nobody took could not be revived")
	}
	s.near("the lease after reviving", s.lookup(key).LeaseLeft, lease)
	s.Advance(lease + slack)
	if b := s.own(key, "b"); b.Attempt != 2 || !b.Doubted {
		t.Errorf("takeover: %+v, want attempt 2, doubted", b)
	}
	if s.renew(key, a) {
		t.Error("an owner whose claim was taken over could renew it")
	}
	s.doubt(key, heldAs(hold("b"), s.lookup(key)))
	s.near("the lease of an event in doubt", s.lookup(key).LeaseLeft, lease)
}

// testOtherLeases: gateways may have different leases and times to live. Those
// that count are the owner's, whoever asks.
func testOtherLeases(t *testing.T, h Harness) {
	s := suite{t, h}
	var others time.Duration // how long the askers keep an event
	try := func(key, token string, lease time.Duration) dedupe.Record {
		t.Helper()
		asker := dedupe.Hold{Token: token, Lease: lease, TTL: others}
		r, err := s.Store.Claim(context.Background(), key, asker, true)
		s.must(err)
		return r
	}
	for n, state := range []string{"in flight", "in doubt", "in flight", "in doubt"} {
		key := dedupe.Key("other-leases", strconv.Itoa(n), "")
		a := s.own(key, "a")
		if state == "in doubt" {
			s.doubt(key, a)
		}
		others = []time.Duration{2 * ttl, ttl / 2}[n/2]
		s.Advance(lease / 2)
		if r := try(key, "hasty", lease/10); r.OwnedBy("hasty") || r.Token != "a" {
			t.Errorf("%s, to one with a shorter lease: %+v, want it a's", state, r)
		}
		s.near(state+", the lease after one with a shorter asked", s.lookup(key).LeaseLeft, lease/2)
		s.Advance(lease/2 + slack)
		if r := try(key, "patient", 10*lease); !r.OwnedBy("patient") || r.Attempt != 2 || !r.Doubted {
			t.Errorf("%s and lapsed, to one with a longer lease: %+v, want it taken over", state, r)
		}
		s.near(state+", the lease of the new owner", s.lookup(key).LeaseLeft, 10*lease)
		s.Advance(lease + slack)
		if r := s.claim(key, "b", true); r.OwnedBy("b") {
			t.Errorf("%s: %+v took a longer lease that runs over", state, r)
		}
	}
}

// testExpiry: a record lives ttl from its last write.
func testExpiry(t *testing.T, h Harness) {
	s := suite{t, h}
	done := dedupe.Key("expiry", "done", "")
	s.own(done, "a")
	s.Advance(ttl / 2)
	s.complete(done, 1)
	s.near("the life of a done event", s.lookup(done).Left, ttl)
	s.Advance(ttl - 2*slack)
	if r := s.claim(done, "b", true); r.State != dedupe.Completed {
		t.Errorf("shortly before the end of its ttl: %+v, want done", r)
	}
	s.Advance(3 * slack)
	if r := s.lookup(done); r != (dedupe.Record{}) {
		t.Errorf("after its ttl: %+v, want no record", r)
	}
	if r := s.own(done, "b"); r.Attempt != 1 || r.Doubted {
		t.Errorf("an expired event comes again: %+v, want a first attempt", r)
	}

	renewed := dedupe.Key("expiry", "renewed", "")
	a := s.own(renewed, "a")
	for range 4 {
		s.Advance(ttl / 2)
		if !s.renew(renewed, a) {
			t.Fatal("a renewed claim expired")
		}
	}
	failed := dedupe.Key("expiry", "failed", "")
	s.release(failed, s.own(failed, "a"))
	s.Advance(ttl - 2*slack)
	if r := s.own(failed, "b"); r.Attempt != 2 {
		t.Errorf("a failed event within its ttl: %+v, want attempt 2", r)
	}
}

// testKeys: different events are different records, however hostile the id.
func testKeys(t *testing.T, h Harness) {
	s := suite{t, h}
	ids := []string{
		"a", "A", "a ", " a", "a:b", "a*", "a?", "[a]", "a\x00", "a\x00b", "a\r\nDEL b", "{a}", "%s", "ä", "a\u0308", "\xff",
		"#a", "!a", "..", "../a", "]]", "redis.call('DEL', KEYS[1])", strings.Repeat("x", 10_000), strings.Repeat("x", 10_001),
	}
	for i, id := range ids {
		key := dedupe.Key("keys", id, "")
		if r := s.claim(key, fmt.Sprintf("t%d", i), true); r.Attempt != 1 || !r.OwnedBy(fmt.Sprintf("t%d", i)) {
			t.Errorf("id %.20q shares a record with another: %+v", id, r)
		}
	}
	for _, source := range []string{"keys2", "key", "keys.a", "KEYS"} {
		if r := s.claim(dedupe.Key(source, "a", ""), "s"+strings.ReplaceAll(source, ".", "_"), true); r.Attempt != 1 {
			t.Errorf("source %q shares a record with another: %+v", source, r)
		}
	}
}

// testBindings: the first value stays, for its time.
func testBindings(t *testing.T, h Harness) {
	s := suite{t, h}
	bind := func(key, value string) string {
		t.Helper()
		got, err := h.Store.Bind(context.Background(), key, value, lease)
		s.must(err)
		return got
	}
	key := dedupe.BindingKey("bindings", [32]byte{1})
	for _, value := range []string{"one", "one", "two"} {
		if got := bind(key, value); got != "one" {
			t.Errorf("bind %q: got %q, want the first, one", value, got)
		}
	}
	if got := bind(dedupe.BindingKey("bindings", [32]byte{2}), "two"); got != "two" {
		t.Errorf("another key: got %q", got)
	}
	if r := s.lookup(key); r != (dedupe.Record{}) {
		t.Errorf("a binding reads as an event: %+v", r)
	}
	s.own(key, "a")
	if got := bind(key, "two"); got != "one" {
		t.Errorf("an event of the same key replaced the binding: %q", got)
	}
	s.Advance(lease - slack)
	if got := bind(key, "two"); got != "one" {
		t.Errorf("before its end: got %q", got)
	}
	s.Advance(2 * slack)
	if got := bind(key, "two"); got != "two" {
		t.Errorf("after its end: got %q, want it free", got)
	}
}

// testRaces: of many claims at once, one wins, for every way an event is free.
func testRaces(t *testing.T, h Harness) {
	s := suite{t, h}
	for _, from := range []string{"absent", "failed", "other lapsed", "other in doubt lapsed"} {
		key := dedupe.Key("races", strings.ReplaceAll(from, " ", "-"), "")
		for _, st := range starts {
			if st.name == from {
				st.make(s, key)
			}
		}
		var owners atomic.Int32
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				token := fmt.Sprintf("racer-%d", i)
				r, err := h.Store.Claim(context.Background(), key, hold(token), true)
				if err != nil {
					t.Error(err)
				} else if r.OwnedBy(token) {
					owners.Add(1)
				}
			})
		}
		all.Wait()
		if n := owners.Load(); n != 1 {
			t.Errorf("%s: %d owners of one event", from, n)
		}
	}
}

// testDoneIsAbsorbing: once an event is done, nothing that races with it or
// comes late makes it anything else.
func testDoneIsAbsorbing(t *testing.T, h Harness) {
	s := suite{t, h}
	ctx := context.Background()
	for round := range 20 {
		key := dedupe.Key("lattice", fmt.Sprint(round), "")
		a := s.own(key, "a")
		steps := []func() error{
			func() error { return h.Store.Complete(ctx, key, dedupe.Done{Mark: 5, TTL: ttl}) },
			func() error { return h.Store.Release(ctx, key, a) },
			func() error { return h.Store.Doubt(ctx, key, a) },
			func() error { _, err := h.Store.Renew(ctx, key, a); return err },
			func() error { _, err := h.Store.Claim(ctx, key, hold("b"), true); return err },
		}
		var all sync.WaitGroup
		for _, step := range steps {
			all.Go(func() {
				if err := step(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if r := plain(s.lookup(key)); r != (dedupe.Record{State: dedupe.Completed, Mark: 5}) {
			t.Fatalf("round %d: %+v, want done", round, r)
		}
	}
}
