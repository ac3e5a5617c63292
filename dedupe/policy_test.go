package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

func holding() dedupe.Policy { p := policy; p.Hold = true; return p }

func forwarding() dedupe.Policy { p := policy; p.ForwardOnError = true; return p }

// TestHoldKeepsADoubtfulEventBack for good, until its answer comes after all.
func TestHoldKeepsADoubtfulEventBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		v := p.admit(event, holding())
		if v.Result != dedupe.ResultFirst {
			t.Fatalf("got %+v", v)
		}
		p.settle(v.Claim, dedupe.OutcomeUnanswered)
		if v := p.admit(event, holding()); v.Result != dedupe.ResultInFlight || v.Claim != nil {
			t.Errorf("while the lease runs: %+v", v)
		}
		for range 10 {
			pass(policy.Lease)
			if v := p.admit(event, holding()); v.Result != dedupe.ResultHeld || v.Claim != nil || v.RetryAfter <= 0 {
				t.Fatalf("after it: %+v, want it held", v)
			}
		}
		p.settle(v.Claim, dedupe.OutcomeAccepted)
		if v := p.admit(event, holding()); v.Result != dedupe.ResultDuplicate {
			t.Errorf("accepted after all: %+v", v)
		}
	})
}

func TestHoldKeepsTheEventOfADeadOwnerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		if _, err := shared.Claim(t.Context(), event.Key, dedupe.Hold{Token: "dead", Lease: policy.Lease, TTL: policy.TTL}, true); err != nil {
			t.Fatal(err)
		}
		pass(policy.Lease)
		if v := start(t, shared).admit(event, holding()); v.Result != dedupe.ResultHeld || v.Claim != nil {
			t.Errorf("got %+v, want it held", v)
		}
	})
}

// TestHoldTriesAFailedEventAgain: nothing is in doubt.
func TestHoldTriesAFailedEventAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settle(p.admit(event, holding()).Claim, dedupe.OutcomeRefused)
		v := p.admit(event, holding())
		if v.Result != dedupe.ResultRetry {
			t.Fatalf("got %+v, want a retry", v)
		}
		p.settle(v.Claim, dedupe.OutcomeAccepted)
	})
}

// TestStoreErrorIsNotAVerdict, by default.
func TestStoreErrorIsNotAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.line.from(lostRequest)
		if v, err := p.Admit(context.Background(), event, policy); !errors.Is(err, errAway) || v.Result != "" || v.Claim != nil {
			t.Errorf("got %+v, %v", v, err)
		}
	})
}

// TestForwardOnErrorDeliversOne, marked, and its copies wait for it.
func TestForwardOnErrorDeliversOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.line.from(lostRequest)
		v := p.admit(event, forwarding())
		if v.Result != dedupe.ResultPossibleRepeat || v.Claim == nil || !errors.Is(v.StoreError, errAway) {
			t.Fatalf("got %+v", v)
		}
		wait := p.copies(t.Context(), 10, event, forwarding())
		synctest.Wait()
		if err := v.Claim.Settle(dedupe.OutcomeAccepted); err == nil {
			t.Error("want an error")
		}
		for _, v := range wait() {
			if v.Result != dedupe.ResultDuplicate {
				t.Errorf("a copy: %+v", v)
			}
		}
		p.line.mend()
		pass(policy.Lease)
		if r := p.record(); r.State != dedupe.Completed {
			t.Errorf("got %+v, want it done when the store is back", r)
		}
	})
}

// TestForwardedDeliveryBecomesKnown: when the store is back, another process
// learns of the delivery that went through without it.
func TestForwardedDeliveryBecomesKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		p.line.next("claim", lostRequest)
		v := p.admit(event, forwarding())
		pass(policy.Lease / 3)
		other.answers(dedupe.ResultInFlight)
		p.settle(v.Claim, dedupe.OutcomeRefused)
		other.settle(other.owns(dedupe.ResultPossibleRepeat), dedupe.OutcomeAccepted)
	})
}

func TestForwardedDeliveryLeavesAnothersClaimAlone(t *testing.T) {
	for _, outcome := range []dedupe.Outcome{dedupe.OutcomeRefused, dedupe.OutcomeUnanswered} {
		t.Run(string(outcome), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New(nil)
				p, other := start(t, shared), start(t, shared)
				c := other.owns(dedupe.ResultFirst)
				p.line.next("claim", lostRequest)
				v := p.admit(event, forwarding())
				before := p.record()
				p.settle(v.Claim, outcome)
				if after := p.record(); after != before {
					t.Errorf("got %+v, it was %+v", after, before)
				}
				other.settle(c, dedupe.OutcomeAccepted)
			})
		})
	}
}

func TestBindingKeepsTheFirstId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		key := dedupe.BindingKey("orders", [32]byte{1})
		for _, id := range []string{"evt_1", "evt_1", "evt_2"} {
			first, err := p.Bind(key, dedupe.BindingValue(id), policy.Lease)
			if err != nil || first != (id == "evt_1") {
				t.Errorf("%s: %v, %v", id, first, err)
			}
		}
		pass(policy.Lease)
		if first, err := p.Bind(key, dedupe.BindingValue("evt_2"), policy.Lease); err != nil || !first {
			t.Errorf("after its time: %v, %v", first, err)
		}
		p.line.from(lostRequest)
		if first, err := p.Bind(key, dedupe.BindingValue("evt_2"), policy.Lease); err == nil || first {
			t.Errorf("the store is away: %v, %v", first, err)
		}
	})
}
