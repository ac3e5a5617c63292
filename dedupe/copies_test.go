package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// TestCopiesWaitForTheDelivery and are duplicates when it is done; the store is
// asked once for all of them.
func TestCopiesWaitForTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		wait := p.copies(t.Context(), 100, event, policy)
		pass(policy.Wait - time.Millisecond)
		p.settle(c, dedupe.OutcomeAccepted)
		for _, v := range wait() {
			if v.Result != dedupe.ResultDuplicate || !v.DoneAt.Equal(time.Now()) || v.Reused {
				t.Fatalf("got %+v, want a duplicate, done now", v)
			}
		}
		if n := p.line.count("claim") + p.line.count("lookup"); n != 1 {
			t.Errorf("the store was asked %d times, want once", n)
		}
	})
}

// TestOneOfManyCopiesIsDelivered, when all come at once.
func TestOneOfManyCopiesIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		wait := p.copies(t.Context(), 50, event, policy)
		delivered := 0
		for _, v := range wait() {
			switch {
			case v.Claim != nil:
				delivered++
				defer p.settle(v.Claim, dedupe.OutcomeAccepted)
			case v.Result != dedupe.ResultInFlight:
				t.Errorf("got %+v, want in flight", v)
			}
		}
		if delivered != 1 || p.line.count("claim") != 1 {
			t.Errorf("%d delivered, %d claims, want one", delivered, p.line.count("claim"))
		}
	})
}

// TestCopiesOfAFailedDeliveryAreInFlight: none is acknowledged and none goes to
// the upstream by itself; the next attempt does.
func TestCopiesOfAFailedDeliveryAreInFlight(t *testing.T) {
	for _, outcome := range []dedupe.Outcome{dedupe.OutcomeRefused, dedupe.OutcomeNotSent, dedupe.OutcomeUnanswered} {
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := alone(t)
				c := p.owns(dedupe.ResultFirst)
				wait := p.copies(t.Context(), 10, event, policy)
				pass(time.Second)
				p.settle(c, outcome)
				again := time.Second
				if outcome == dedupe.OutcomeUnanswered {
					again = policy.Lease
				}
				for _, v := range wait() {
					if v.Result != dedupe.ResultInFlight || v.Claim != nil || v.RetryAfter != again {
						t.Errorf("got %+v, want in flight, to come again after %v", v, again)
					}
				}
				if n := p.line.count("claim"); n != 1 {
					t.Errorf("%d claims, want one", n)
				}
				if outcome != dedupe.OutcomeUnanswered {
					p.settle(p.owns(dedupe.ResultRetry), dedupe.OutcomeAccepted)
				}
			})
		})
	}
}

func TestCopyWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		for _, wait := range []time.Duration{0, time.Millisecond, 5 * time.Second} {
			patient := policy
			patient.Wait = wait
			begin := time.Now()
			v := p.admit(event, patient)
			if v.Result != dedupe.ResultInFlight || v.RetryAfter < time.Second || time.Since(begin) != wait {
				t.Errorf("wait %v: %+v after %v", wait, v, time.Since(begin))
			}
		}
		p.settle(c, dedupe.OutcomeAccepted)
	})
}

// TestSenderGoneWhileWaiting: its copy ends, the delivery does not notice.
func TestSenderGoneWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		ctx, hangUp := context.WithCancel(t.Context())
		gone := p.copies(ctx, 10, event, policy)
		stays := p.copies(t.Context(), 10, event, policy)
		pass(time.Second)
		hangUp()
		for _, v := range gone() {
			if v.Result != dedupe.ResultInFlight || v.Claim != nil {
				t.Errorf("the sender hung up: %+v", v)
			}
		}
		p.settle(c, dedupe.OutcomeAccepted)
		for _, v := range stays() {
			if v.Result != dedupe.ResultDuplicate {
				t.Errorf("another sender stayed: %+v", v)
			}
		}
	})
}

// TestStoreIsAskedWhateverBecameOfTheSender: a claim does not depend on it.
func TestStoreIsAskedWhateverBecameOfTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		v, err := p.Admit(ctx, event, policy)
		if err != nil || v.Result != dedupe.ResultFirst {
			t.Fatalf("got %+v, %v", v, err)
		}
		p.settle(v.Claim, dedupe.OutcomeRefused)
		if r := p.record(); r.State != dedupe.Failed {
			t.Errorf("got %+v, want it free", r)
		}
	})
}

// TestWaitingIsToldBeforeWaiting, and only to those who wait.
func TestWaitingIsToldBeforeWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		told := make(chan bool, 10)
		e := event
		e.Waiting = func() { told <- true }
		v := p.admit(e, policy)
		if len(told) != 0 {
			t.Error("the first delivery needs its body")
		}
		wait := p.copies(t.Context(), 3, e, policy)
		synctest.Wait()
		if len(told) != 3 {
			t.Errorf("%d of 3 were told", len(told))
		}
		p.settle(v.Claim, dedupe.OutcomeAccepted)
		wait()
		p.admit(e, policy)
		if len(told) != 3 {
			t.Error("a duplicate does not wait")
		}
	})
}

// TestCopiesShareTheStoresError: they are not told that the event is in flight.
func TestCopiesShareTheStoresError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.line.next("claim", silence)
		failed := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := p.Admit(context.Background(), event, policy)
				failed <- err
			}()
		}
		for range 10 {
			if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the store's time-out", err)
			}
		}
		if n := p.line.count("claim"); n != 1 {
			t.Errorf("%d claims, want one", n)
		}
	})
}

// slowStore takes its time over a claim.
type slowStore struct{ dedupe.Store }

func (s slowStore) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Store.Claim(ctx, key, h, takeover)
}

// TestCopyDoesNotGuessWhatTheStoreIsBeingAsked: copies that come together ask
// once, and wait for that answer however little they are to wait for a delivery.
func TestCopyDoesNotGuessWhatTheStoreIsBeingAsked(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, slowStore{memstore.New(nil)})
			hurried := policy
			hurried.Wait = wait
			told := func(want dedupe.Result) (claims []*dedupe.Claim) {
				for _, v := range p.copies(t.Context(), 50, event, hurried)() {
					if v.Claim != nil {
						claims = append(claims, v.Claim)
					} else if v.Result != want {
						t.Errorf("wait %v: got %+v, want %s", wait, v, want)
					}
				}
				synctest.Wait()
				return claims
			}
			claims := told(dedupe.ResultInFlight)
			if len(claims) != 1 {
				t.Fatalf("%d claims", len(claims))
			}
			p.settle(claims[0], dedupe.OutcomeAccepted)
			if claims := told(dedupe.ResultDuplicate); len(claims) != 0 {
				t.Errorf("a done event was claimed %d times", len(claims))
			}
		})
	}
}
