package dedupe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// TestLateAcceptedAnswerCompletes: the answer came after the time-out.
func TestLateAcceptedAnswerCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		p.settle(c, dedupe.OutcomeUnanswered)
		pass(time.Second)
		p.settle(c, dedupe.OutcomeAccepted)
		p.answers(dedupe.ResultDuplicate)
	})
}

// TestLateRefusedAnswerReleases: the event is free before its lease is over,
// and stays marked.
func TestLateRefusedAnswerReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		p.settle(c, dedupe.OutcomeUnanswered)
		p.answers(dedupe.ResultInFlight)
		p.settle(c, dedupe.OutcomeRefused)
		p.settle(p.owns(dedupe.ResultPossibleRepeat), dedupe.OutcomeAccepted)
	})
}

// TestLateDoubtChangesNothing: it has been said already.
func TestLateDoubtChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		p.settle(c, dedupe.OutcomeUnanswered)
		pass(policy.Lease / 2)
		before := p.record()
		p.settle(c, dedupe.OutcomeUnanswered)
		if after := p.record(); after != before {
			t.Errorf("got %+v, it was %+v", after, before)
		}
	})
}

// TestLostSettlementIsWrittenInTheBackground, whether its request or its reply
// was lost, and the record is in the end as if nothing had happened.
func TestLostSettlementIsWrittenInTheBackground(t *testing.T) {
	for op, outcome := range map[string]dedupe.Outcome{
		"complete": dedupe.OutcomeAccepted, "release": dedupe.OutcomeRefused, "doubt": dedupe.OutcomeUnanswered,
	} {
		for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silence": silence} {
			t.Run(op+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shared := memstore.New(nil)
					p, calm := start(t, shared), alone(t)
					calm.settle(calm.owns(dedupe.ResultFirst), outcome)
					p.line.next(op, f, f, f)
					if err := p.owns(dedupe.ResultFirst).Settle(outcome); err == nil {
						t.Error("the error is kept from the log")
					}
					pass(5 * time.Second)
					got, want := p.record(), calm.record()
					if got.State != want.State || got.Attempt != want.Attempt || got.Doubted != want.Doubted || got.Mark != want.Mark {
						t.Errorf("got %+v, want %+v", got, want)
					}
					if p.seen.count("deferred "+op) != 1 || p.seen.count("written "+op) != 1 {
						t.Errorf("the observer was told %v", p.seen.all())
					}
				})
			})
		}
	}
}

// TestErroredClaimIsFreeAtTheNextAttempt: whatever it left in the store is
// taken back in the background, and nobody is told of a doubt.
func TestErroredClaimIsFreeAtTheNextAttempt(t *testing.T) {
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silence": silence} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New(nil)
				p, other := start(t, shared), start(t, shared)
				p.line.next("claim", f)
				p.line.next("release", lostRequest, lostReply)
				if v, err := p.Admit(t.Context(), event, policy); err == nil || v.Claim != nil {
					t.Fatalf("got %+v, want an error", v)
				}
				pass(5 * time.Second)
				v := other.admit(event, policy)
				want := dedupe.ResultFirst
				if f == lostReply {
					want = dedupe.ResultRetry
				}
				if v.Result != want || v.Claim == nil {
					t.Fatalf("got %+v, want %s", v, want)
				}
				other.settle(v.Claim, dedupe.OutcomeAccepted)
			})
		})
	}
}

// TestErroredTakeoverKeepsTheDoubt: the claim that was not heard of is taken
// back, the death before it is not forgotten.
func TestErroredTakeoverKeepsTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		if _, err := shared.Claim(t.Context(), event.Key, dedupe.Hold{Token: "dead", Lease: policy.Lease, TTL: policy.TTL}, true); err != nil {
			t.Fatal(err)
		}
		pass(policy.Lease)
		p := start(t, shared)
		p.line.next("claim", lostReply)
		if _, err := p.Admit(t.Context(), event, policy); err == nil {
			t.Fatal("want an error")
		}
		pass(time.Second)
		p.settle(p.owns(dedupe.ResultPossibleRepeat), dedupe.OutcomeAccepted)
	})
}

// TestUnreadableRecordIsNeitherFreeNorDone, and leaves nothing to be written.
func TestUnreadableRecordIsNeitherFreeNorDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.line.from(corrupt, "claim")
		if v, err := p.Admit(t.Context(), event, policy); err == nil || v.Claim != nil || v.Result != "" {
			t.Errorf("got %+v, %v, want an error", v, err)
		}
		pass(time.Minute)
		if n := p.line.count("release"); n != 0 {
			t.Errorf("%d releases of a record that nobody claimed", n)
		}
	})
}

// evasive is a store that breaks its contract: it neither grants a claim nor
// says who owns the event.
type evasive struct {
	dedupe.Store
	record dedupe.Record
}

func (s evasive) Claim(context.Context, string, dedupe.Hold, bool) (dedupe.Record, error) {
	return s.record, nil
}

// TestEvasiveStoreIsNotBelieved: an answer that makes no sense is an error.
func TestEvasiveStoreIsNotBelieved(t *testing.T) {
	for _, r := range []dedupe.Record{{}, {State: dedupe.Failed, Attempt: 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, evasive{memstore.New(nil), r})
			if v, err := p.Admit(t.Context(), event, policy); err == nil || v.Claim != nil {
				t.Errorf("%+v: got %+v, want an error", r, v)
			}
		})
	}
}
