package dedupe_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// TestResultsFollowTheRecord walks through every result that a delivery can
// have by default.
func TestResultsFollowTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settle(p.owns(dedupe.ResultFirst), dedupe.OutcomeRefused)
		p.settle(p.owns(dedupe.ResultRetry), dedupe.OutcomeNotSent)
		third := p.owns(dedupe.ResultRetry)
		if third.Attempt() != 3 {
			t.Errorf("attempt %d, want 3", third.Attempt())
		}
		p.answers(dedupe.ResultInFlight)
		p.settle(third, dedupe.OutcomeUnanswered)

		v := p.answers(dedupe.ResultInFlight)
		if v.RetryAfter != policy.Lease {
			t.Errorf("in doubt: come again after %v, want a lease", v.RetryAfter)
		}
		pass(policy.Lease)
		p.settle(p.owns(dedupe.ResultPossibleRepeat), dedupe.OutcomeRefused)
		last := p.owns(dedupe.ResultPossibleRepeat)
		if last.Attempt() != 5 {
			t.Errorf("attempt %d, want 5", last.Attempt())
		}
		p.settle(last, dedupe.OutcomeAccepted)
		p.answers(dedupe.ResultDuplicate)
	})
}

// TestDuplicateNeverReachesUpstream: while the record lives, at any process.
func TestDuplicateNeverReachesUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		p.settle(p.owns(dedupe.ResultFirst), dedupe.OutcomeAccepted)
		for range 7*24 - 1 {
			p.answers(dedupe.ResultDuplicate)
			other.answers(dedupe.ResultDuplicate)
			pass(time.Hour)
		}
		pass(time.Hour)
		p.settle(p.owns(dedupe.ResultFirst), dedupe.OutcomeAccepted)
	})
}

// TestDuplicateTellsWhenItWasDone, and whether it is the same body.
func TestDuplicateTellsWhenItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		pass(3 * time.Second)
		done := time.Now()
		p.settle(c, dedupe.OutcomeAccepted)
		pass(time.Hour)
		if v := p.answers(dedupe.ResultDuplicate); !v.DoneAt.Equal(done) || v.Reused {
			t.Errorf("got %+v, want done at %v with the same body", v, done)
		}
		other := event
		other.Mark++
		if v := p.admit(other, policy); v.Result != dedupe.ResultDuplicate || !v.Reused {
			t.Errorf("another body under a done id: %+v, want a duplicate, reused", v)
		}
	})
}

// TestBodyMakesNoDifferenceUntilDone: an event that failed may come again with
// another body.
func TestBodyMakesNoDifferenceUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settle(p.owns(dedupe.ResultFirst), dedupe.OutcomeRefused)
		other := event
		other.Mark++
		v := p.admit(other, policy)
		if v.Result != dedupe.ResultRetry || v.Reused {
			t.Fatalf("got %+v, want a retry", v)
		}
		p.settle(v.Claim, dedupe.OutcomeAccepted)
		if v := p.admit(other, policy); v.Reused {
			t.Errorf("the body that was accepted is called reused: %+v", v)
		}
	})
}

// TestUnknownOutcomeIsInDoubt: what nobody named may have reached the upstream.
func TestUnknownOutcomeIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settle(p.owns(dedupe.ResultFirst), dedupe.Outcome(""))
		if r := p.record(); r.State != dedupe.InDoubt || !r.Doubted {
			t.Errorf("got %+v, want it in doubt", r)
		}
	})
}

// TestTokensAreUnique over claims and processes, and fit what stores accept.
func TestTokensAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		known := make(map[string]bool)
		for range 20 {
			p := start(t, shared)
			for range 50 {
				v := p.admit(event, policy)
				p.settle(v.Claim, dedupe.OutcomeRefused)
			}
			for _, token := range p.line.tokens {
				if known[token] {
					t.Fatalf("%q twice", token)
				}
				known[token] = true
				if len(token) == 0 || len(token) > 32 {
					t.Errorf("%q is not of 1 to 32 bytes", token)
				}
				for _, c := range []byte(token) {
					if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
						t.Errorf("%q holds %q", token, c)
					}
				}
			}
		}
		if len(known) != 1000 {
			t.Errorf("%d tokens, want 1000", len(known))
		}
	})
}
