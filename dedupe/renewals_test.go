package dedupe_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// TestRenewalsOfManyClaims: every lease is kept, long ones and short ones, begun
// at any time, and however many claims are settled meanwhile.
func TestRenewalsOfManyClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p := start(t, shared)
		held := make(map[string]*dedupe.Claim)
		lease := func(i int) time.Duration { return []time.Duration{time.Second, 7 * time.Second, time.Minute}[i%3] }
		for i := range 300 {
			e, with := dedupe.Event{Key: fmt.Sprint("a:", i)}, policy
			with.Lease, with.Wait = lease(i), 0
			v := p.admit(e, with)
			if v.Claim == nil {
				t.Fatalf("event %d is %s", i, v.Result)
			}
			if i%5 == 0 {
				held[e.Key] = v.Claim
			} else {
				p.settle(v.Claim, dedupe.OutcomeAccepted)
			}
			pass(time.Duration(i) * time.Millisecond)
			for key := range held {
				r, err := shared.Lookup(t.Context(), key)
				if err != nil || r.State != dedupe.InFlight || r.LeaseLeft < time.Second/2 {
					t.Fatalf("after event %d, %s is %v with %v left, %v", i, key, r.State, r.LeaseLeft, err)
				}
			}
		}
		for _, c := range held {
			p.settle(c, dedupe.OutcomeRefused)
		}
		before := p.line.count("renew")
		pass(time.Hour)
		if n := p.line.count("renew"); n != before {
			t.Errorf("%d renewals after the last claim was settled", n-before)
		}
	})
}

// TestRenewalsOfClaimsThatBeganTogetherShareATimer: it rings seldom, even though
// thousands of claims are under way for long.
func TestRenewalsOfClaimsThatBeganTogetherShareATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &countingClock{}
		g := dedupe.New(memstore.New(nil), dedupe.Options{Clock: clock})
		defer func() { _ = g.Close(t.Context()) }()
		with := policy
		with.Lease = 30 * time.Second
		for i := range 1000 {
			if v, err := g.Admit(t.Context(), dedupe.Event{Key: fmt.Sprint("a:", i)}, with); err != nil || v.Claim == nil {
				t.Fatalf("event %d: %+v, %v", i, v, err)
			}
			time.Sleep(9 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if clock.timers > 100 {
			t.Errorf("%d timers for the renewals of about a minute", clock.timers)
		}
	})
}

// countingClock counts the timers that are set.
type countingClock struct{ timers int }

func (*countingClock) Now() time.Time { return time.Now() }

func (c *countingClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.timers++
	return time.AfterFunc(d, f).Stop
}

// TestShortLeaseIsRenewedBesideALongOne: routes may have different leases.
func TestShortLeaseIsRenewedBesideALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		long := policy
		long.Lease = 20 * policy.Lease
		patient := p.admit(dedupe.Event{Key: dedupe.Key("orders", "long", "")}, long).Claim
		c := p.owns(dedupe.ResultFirst)
		for begin := time.Now(); time.Since(begin) < 10*policy.Lease; pass(time.Second) {
			if left := p.record().LeaseLeft; left < policy.Lease/2 {
				t.Fatalf("%v of the lease left", left)
			}
		}
		p.settle(c, dedupe.OutcomeAccepted)
		p.settle(patient, dedupe.OutcomeAccepted)
	})
}
