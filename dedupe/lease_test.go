package dedupe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// TestRenewalsKeepTheLease of an upstream that takes twenty times as long.
func TestRenewalsKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		c := p.owns(dedupe.ResultFirst)
		for begin := time.Now(); time.Since(begin) < 10*time.Minute; pass(time.Second) {
			other.answers(dedupe.ResultInFlight)
			if left := p.record().LeaseLeft; left < policy.Lease/2 {
				t.Fatalf("%v of the lease left", left)
			}
		}
		p.settle(c, dedupe.OutcomeAccepted)
		other.answers(dedupe.ResultDuplicate)
		if all := p.seen.all(); len(all) > 0 {
			t.Errorf("the observer was told %v", all)
		}
	})
}

func TestRenewalEndsWithItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		for _, outcome := range []dedupe.Outcome{dedupe.OutcomeRefused, dedupe.OutcomeUnanswered, dedupe.OutcomeAccepted} {
			v := p.admit(event, policy)
			pass(policy.Lease)
			p.settle(v.Claim, outcome)
			before := p.line.count("renew")
			pass(time.Hour)
			if n := p.line.count("renew"); n != before {
				t.Errorf("%s: renewed %d times after the end", outcome, n-before)
			}
		}
	})
}

// TestRenewalIsTriedAgain: half a lease of failures does not cost the claim.
func TestRenewalIsTriedAgain(t *testing.T) {
	for name, f := range map[string]fault{"lost requests": lostRequest, "lost replies": lostReply, "silence": silence} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New(nil)
				p, other := start(t, shared), start(t, shared)
				c := p.owns(dedupe.ResultFirst)
				p.line.next("renew", f, f, f)
				for begin := time.Now(); time.Since(begin) < 2*time.Minute; pass(time.Second) {
					other.answers(dedupe.ResultInFlight)
				}
				if n := p.seen.count("renew failed"); n != 3 {
					t.Errorf("%d failures reported, want 3", n)
				}
				p.settle(c, dedupe.OutcomeAccepted)
			})
		})
	}
}

func TestLapsedLeaseThatNobodyTookIsRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		c := p.owns(dedupe.ResultFirst)
		p.line.from(lostRequest)
		pass(2 * policy.Lease)
		if r := p.record(); r.LeaseLeft != 0 {
			t.Fatalf("got %+v, want it lapsed", r)
		}
		p.line.mend()
		pass(policy.Lease / 3)
		other.answers(dedupe.ResultInFlight)
		if n := p.seen.count("claim lost"); n != 0 {
			t.Error("the claim was not lost")
		}
		p.settle(c, dedupe.OutcomeRefused)
		p.settle(other.owns(dedupe.ResultRetry), dedupe.OutcomeAccepted)
	})
}

// TestForgottenClaimIsPutBack: a store that lost its data learns of a delivery
// that still runs.
func TestForgottenClaimIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		empty := memstore.New(nil)
		p.line.lead(empty)
		pass(policy.Lease / 3)
		start(t, empty).answers(dedupe.ResultInFlight)
		p.settle(c, dedupe.OutcomeAccepted)
	})
}

// TestForgottenTakeoverStaysDoubtful: a store that lost its data learns that an
// earlier try may have been processed, however the owner tells it of its claim.
func TestForgottenTakeoverStaysDoubtful(t *testing.T) {
	for _, renewed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := alone(t)
			p.settle(p.owns(dedupe.ResultFirst), dedupe.OutcomeUnanswered)
			pass(policy.Lease)
			c := p.owns(dedupe.ResultPossibleRepeat)
			p.line.lead(memstore.New(nil))
			if renewed {
				pass(policy.Lease / 3)
				if r := p.record(); r.State != dedupe.InFlight || !r.Doubted || r.Attempt != 2 {
					t.Errorf("put back as %+v, want it doubted, attempt 2", r)
				}
			}
			p.settle(c, dedupe.OutcomeRefused)
			if again := p.owns(dedupe.ResultPossibleRepeat); again.Attempt() != 3 {
				t.Errorf("attempt %d, want 3", again.Attempt())
			}
		})
	}
}

// takenOver is a claim of p that other has taken over.
func takenOver(t *testing.T, p, other process) (old, current *dedupe.Claim) {
	t.Helper()
	old = p.owns(dedupe.ResultFirst)
	p.line.from(lostRequest, "renew")
	pass(policy.Lease)
	current = other.owns(dedupe.ResultPossibleRepeat)
	p.line.mend()
	return old, current
}

// TestLostClaimIsReported once, and not renewed any more.
func TestLostClaimIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		old, current := takenOver(t, p, other)
		pass(policy.Lease / 2)
		renewals := p.line.count("renew")
		pass(time.Hour)
		if n := p.seen.count("claim lost"); n != 1 {
			t.Errorf("reported %d times, want once", n)
		}
		if n := p.line.count("renew"); n != renewals {
			t.Error("still renewed")
		}
		p.settle(old, dedupe.OutcomeUnanswered)
		other.settle(current, dedupe.OutcomeAccepted)
	})
}

// TestLateOwnerDoesNotHarmTheNewOne: what it has to say of its failure does not
// touch the claim that is not its own any more.
func TestLateOwnerDoesNotHarmTheNewOne(t *testing.T) {
	for _, outcome := range []dedupe.Outcome{dedupe.OutcomeRefused, dedupe.OutcomeNotSent, dedupe.OutcomeUnanswered} {
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New(nil)
				p, other := start(t, shared), start(t, shared)
				old, current := takenOver(t, p, other)
				before := p.record()
				p.settle(old, outcome)
				if after := p.record(); after != before {
					t.Errorf("got %+v, it was %+v", after, before)
				}
				other.settle(current, dedupe.OutcomeAccepted)
				p.settle(old, dedupe.OutcomeRefused)
				other.answers(dedupe.ResultDuplicate)
			})
		})
	}
}

// TestLateOwnerCompletes: what the upstream accepted is done, whoever holds the
// claim, and the new owner's failure does not undo it.
func TestLateOwnerCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		old, current := takenOver(t, p, other)
		p.settle(old, dedupe.OutcomeAccepted)
		p.answers(dedupe.ResultDuplicate)
		other.settle(current, dedupe.OutcomeRefused)
		other.answers(dedupe.ResultDuplicate)
	})
}
