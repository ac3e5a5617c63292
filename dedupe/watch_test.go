package dedupe_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// maxLooks bounds the lookups that the copies of an event cost together in one
// wait of 5s: 9 in the first two seconds, then two a second.
const maxLooks = 16

// TestCopiesOfAnotherProcessShareOneWatcher: however many wait, the store is
// asked to claim once and then looked at by one.
func TestCopiesOfAnotherProcessShareOneWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		owner, p := start(t, shared), start(t, shared)
		c := owner.owns(dedupe.ResultFirst)
		for _, v := range p.copies(t.Context(), 200, event, policy)() {
			if v.Result != dedupe.ResultInFlight || v.Claim != nil {
				t.Fatalf("got %+v, want in flight", v)
			}
		}
		if n := p.line.count("claim"); n != 1 {
			t.Errorf("%d claims, want one", n)
		}
		if n := p.line.count("lookup"); n > maxLooks {
			t.Errorf("%d lookups, want at most %d", n, maxLooks)
		}
		owner.settle(c, dedupe.OutcomeAccepted)
	})
}

// TestWatchedDeliveryIsNoticed, whichever way it ends.
func TestWatchedDeliveryIsNoticed(t *testing.T) {
	for _, end := range []struct {
		outcome dedupe.Outcome
		result  dedupe.Result
		after   time.Duration // when to come again, at the earliest
	}{
		{dedupe.OutcomeAccepted, dedupe.ResultDuplicate, 0},
		{dedupe.OutcomeRefused, dedupe.ResultInFlight, time.Second},
		{dedupe.OutcomeUnanswered, dedupe.ResultInFlight, policy.Lease - time.Second},
	} {
		t.Run(string(end.outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New(nil)
				owner, p := start(t, shared), start(t, shared)
				c := owner.owns(dedupe.ResultFirst)
				wait := p.copies(t.Context(), 20, event, policy)
				pass(2 * time.Second)
				owner.settle(c, end.outcome)
				settled := time.Now()
				for _, v := range wait() {
					if v.Result != end.result || v.Claim != nil || v.RetryAfter < end.after || v.Reused {
						t.Fatalf("got %+v", v)
					}
				}
				if late := time.Since(settled); late > 500*time.Millisecond {
					t.Errorf("noticed after %v, want at most one pace", late)
				}
				looks := p.line.count("lookup")
				pass(time.Minute)
				if n := p.line.count("lookup"); n != looks {
					t.Errorf("%d lookups after the end", n-looks)
				}
			})
		})
	}
}

// TestWatcherStaysForLaterCopies: one that comes while others wait has its own
// patience.
func TestWatcherStaysForLaterCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		owner, p := start(t, shared), start(t, shared)
		c := owner.owns(dedupe.ResultFirst)
		first := p.copies(t.Context(), 1, event, policy)
		pass(4 * time.Second)
		later := p.copies(t.Context(), 1, event, policy)
		pass(4 * time.Second)
		if v := first()[0]; v.Result != dedupe.ResultInFlight {
			t.Errorf("the first copy: %+v", v)
		}
		owner.settle(c, dedupe.OutcomeAccepted)
		if v := later()[0]; v.Result != dedupe.ResultDuplicate {
			t.Errorf("the later copy: %+v", v)
		}
		if n := p.line.count("claim"); n != 1 {
			t.Errorf("%d claims, want one", n)
		}
	})
}

// TestWatcherStaysForThePatientOnes: one that waits for less does not send the
// others away.
func TestWatcherStaysForThePatientOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		owner, p := start(t, shared), start(t, shared)
		c := owner.owns(dedupe.ResultFirst)
		patient := p.copies(t.Context(), 1, event, policy)
		pass(100 * time.Millisecond)
		hurried := policy
		hurried.Wait = time.Second
		if v := p.copies(t.Context(), 1, event, hurried)()[0]; v.Result != dedupe.ResultInFlight {
			t.Errorf("the hurried one: %+v", v)
		}
		pass(2 * time.Second)
		owner.settle(c, dedupe.OutcomeAccepted)
		if v := patient()[0]; v.Result != dedupe.ResultDuplicate {
			t.Errorf("the patient one: %+v", v)
		}
	})
}

// TestWatcherOutlastsAnOutage: a store that cannot be looked at says nothing.
func TestWatcherOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		owner, p := start(t, shared), start(t, shared)
		c := owner.owns(dedupe.ResultFirst)
		wait := p.copies(t.Context(), 5, event, policy)
		p.line.from(lostRequest, "lookup")
		pass(time.Second)
		owner.settle(c, dedupe.OutcomeAccepted)
		pass(2 * time.Second)
		p.line.mend()
		for _, v := range wait() {
			if v.Result != dedupe.ResultDuplicate {
				t.Errorf("got %+v, want a duplicate", v)
			}
		}
	})
}

// TestWatchedDeathFreesTheNextAttempt: copies are told to come again, and the
// next one takes over.
func TestWatchedDeathFreesTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		if _, err := shared.Claim(t.Context(), event.Key, dedupe.Hold{Token: "dead", Lease: policy.Lease, TTL: policy.TTL}, true); err != nil {
			t.Fatal(err)
		}
		p := start(t, shared)
		pass(policy.Lease - 2*time.Second)
		begin := time.Now()
		for _, v := range p.copies(t.Context(), 5, event, policy)() {
			if v.Result != dedupe.ResultInFlight || v.Claim != nil || v.RetryAfter != time.Second {
				t.Errorf("got %+v, want in flight, and free now", v)
			}
		}
		if late := time.Since(begin) - 2*time.Second; late < 0 || late > 500*time.Millisecond {
			t.Errorf("told %v after the lease was over, want at most one pace", late)
		}
		pass(0)
		p.settle(p.owns(dedupe.ResultPossibleRepeat), dedupe.OutcomeAccepted)
	})
}

// TestCloseEndsWatchers: the store is not used after it was closed.
func TestCloseEndsWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		owner, p := start(t, shared), start(t, shared)
		c := owner.owns(dedupe.ResultFirst)
		wait := p.copies(t.Context(), 5, event, policy)
		pass(30 * time.Millisecond)
		begin := time.Now()
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait()
		if time.Since(begin) > time.Second {
			t.Errorf("closing took %v", time.Since(begin))
		}
		pass(time.Minute)
		if len(p.line.late) > 0 {
			t.Errorf("after Close: %v", p.line.late)
		}
		owner.settle(c, dedupe.OutcomeAccepted)
	})
}

// TestCloseWaitsForARenewal: one that is under way when its claim is settled
// still uses the store.
func TestCloseWaitsForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		p.line.next("renew", silence)
		pass(policy.Lease / 3)
		p.settle(c, dedupe.OutcomeAccepted)
		settled := time.Now()
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(settled); took < time.Second || took > time.Second+time.Second/16 {
			t.Errorf("closed after %v, the renewal takes a second", took)
		}
	})
}

// TestCloseWithClaimsUnsettled: a process that must exit uses the store no more
// and reports what it could not write.
func TestCloseWithClaimsUnsettled(t *testing.T) {
	for _, outcome := range []dedupe.Outcome{dedupe.OutcomeAccepted, dedupe.OutcomeRefused, dedupe.OutcomeUnanswered} {
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := alone(t)
				c := p.owns(dedupe.ResultFirst)
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(2 * policy.Lease)
				if err := c.Settle(outcome); err == nil {
					t.Error("want an error")
				}
				if all := p.seen.all(); len(all) != 1 || !strings.HasPrefix(all[0], "lost ") {
					t.Errorf("the observer was told %v, want the settlement lost", all)
				}
				if _, err := p.Admit(t.Context(), dedupe.Event{Key: "orders:evt_2"}, policy); err == nil {
					t.Error("want an error")
				}
				if len(p.line.late) > 0 {
					t.Errorf("after Close: %v", p.line.late)
				}
			})
		})
	}
}
