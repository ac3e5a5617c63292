package dedupe_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// unwritten is an event that was accepted while the store was away. Only this
// process knows of it.
func unwritten(t *testing.T, p process, late bool) {
	t.Helper()
	c := p.owns(dedupe.ResultFirst)
	if late {
		p.settle(c, dedupe.OutcomeUnanswered)
	}
	p.line.from(lostRequest)
	if err := c.Settle(dedupe.OutcomeAccepted); err == nil {
		t.Fatal("want an error")
	}
}

// TestUnwrittenCompletionMakesDuplicatesHere, of those who wait and of those
// who come later, and it is written when the store is back.
func TestUnwrittenCompletionMakesDuplicatesHere(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := alone(t)
				unwritten(t, p, late)
				settled := time.Now()
				for range 10 {
					if v := p.answers(dedupe.ResultDuplicate); !v.DoneAt.Equal(settled) {
						t.Errorf("got %+v, want done at %v", v, settled)
					}
					pass(time.Minute)
				}
				p.line.mend()
				pass(5 * time.Second)
				if r := p.record(); r.State != dedupe.Completed || r.Mark != event.Mark {
					t.Errorf("got %+v, want it done", r)
				}
				if p.seen.count("written complete") != 1 {
					t.Errorf("the observer was told %v", p.seen.all())
				}
				claims := p.line.count("claim")
				p.answers(dedupe.ResultDuplicate)
				if p.line.count("claim") != claims+1 {
					t.Error("what the store knows is kept in memory")
				}
			})
		})
	}
}

func TestUnwrittenCompletionReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		c := p.owns(dedupe.ResultFirst)
		wait := p.copies(t.Context(), 10, event, policy)
		pass(time.Second)
		p.line.from(lostRequest)
		if err := c.Settle(dedupe.OutcomeAccepted); err == nil {
			t.Error("want an error")
		}
		for _, v := range wait() {
			if v.Result != dedupe.ResultDuplicate {
				t.Errorf("got %+v, want a duplicate", v)
			}
		}
	})
}

// TestLateUnwrittenCompletionCountsAgainstARedelivery: the event has been
// accepted, though another try of it is under way.
func TestLateUnwrittenCompletionCountsAgainstARedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		old := p.owns(dedupe.ResultFirst)
		p.settle(old, dedupe.OutcomeUnanswered)
		pass(policy.Lease)
		again := p.owns(dedupe.ResultPossibleRepeat)
		p.line.from(lostRequest, "complete")
		if err := old.Settle(dedupe.OutcomeAccepted); err == nil {
			t.Error("want an error")
		}
		p.answers(dedupe.ResultDuplicate)
		p.settle(again, dedupe.OutcomeRefused)
		p.answers(dedupe.ResultDuplicate)
	})
}

// TestStoreThatIsAwayIsTriedNowAndThen: soon at first, then every few seconds.
func TestStoreThatIsAwayIsTriedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		unwritten(t, p, false)
		before := p.line.count("complete")
		pass(time.Second)
		if n := p.line.count("complete") - before; n < 3 || n > 5 {
			t.Errorf("tried %d times in the first second", n)
		}
		before = p.line.count("complete")
		pass(time.Hour)
		if n := p.line.count("complete") - before; n < 700 || n > 730 {
			t.Errorf("tried %d times in an hour, want every 5s", n)
		}
	})
}

// TestCloseWritesWhatWaits, as soon as the store is back.
func TestCloseWritesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		unwritten(t, p, false)
		pass(time.Minute) // the pause between tries is at its longest
		time.AfterFunc(2*time.Second, p.line.mend)
		begin := time.Now()
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := p.record(); r.State != dedupe.Completed {
			t.Errorf("got %+v, want it done", r)
		}
		if took := time.Since(begin); took > 2200*time.Millisecond {
			t.Errorf("closed %v after the store was back", took-2*time.Second)
		}
	})
}

// TestCloseReportsWhatIsLost, when its time is over.
func TestCloseReportsWhatIsLost(t *testing.T) {
	for name, f := range map[string]fault{"away": lostRequest, "silent": silence} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := alone(t)
				unwritten(t, p, false)
				p.line.from(f)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				begin := time.Now()
				if err := p.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("closed after %v", took)
				}
				if p.seen.count("lost complete") != 1 {
					t.Errorf("the observer was told %v", p.seen.all())
				}
				pass(time.Minute)
				if len(p.line.late) > 0 {
					t.Errorf("after Close: %v", p.line.late)
				}
			})
		})
	}
}

// TestBacklogOfReleasesIsBounded: an outage makes one per refused delivery.
func TestBacklogOfReleasesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.line.from(lostRequest)
		e := event
		for i := range 1500 {
			e.Key = dedupe.Key("orders", fmt.Sprint("evt_", i), "")
			if _, err := p.Admit(t.Context(), e, policy); err == nil {
				t.Fatal("want an error")
			}
		}
		if lost, kept := p.seen.count("lost release"), p.seen.count("deferred release"); lost != 500 || kept != 1000 {
			t.Errorf("%d lost, %d kept", lost, kept)
		}
		p.line.mend()
		pass(6 * time.Second)
		if n := p.seen.count("written release"); n != 1000 {
			t.Errorf("%d written", n)
		}
	})
}

// stubborn is a store that does not write some events.
type stubborn struct {
	dedupe.Store
	key string
	err error
}

func (s stubborn) Complete(ctx context.Context, key string, d dedupe.Done) error {
	if key == s.key {
		return s.err
	}
	return s.Store.Complete(ctx, key, d)
}

func (s stubborn) Release(ctx context.Context, key string, h dedupe.Hold) error {
	if key == s.key {
		return s.err
	}
	return s.Store.Release(ctx, key, h)
}

// TestRecordThatCannotBeWrittenKeepsNothingWaiting: it is one event's trouble.
func TestRecordThatCannotBeWrittenKeepsNothingWaiting(t *testing.T) {
	for _, bad := range []dedupe.Outcome{dedupe.OutcomeAccepted, dedupe.OutcomeRefused} {
		for name, err := range map[string]error{"any error": errAway, "corrupt": dedupe.ErrCorrupt} {
			for _, good := range []dedupe.Outcome{dedupe.OutcomeAccepted, dedupe.OutcomeRefused} {
				t.Run(fmt.Sprint(bad, " ", name, " before ", good), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithCancel(t.Context())
						cancel() // do not wait for what cannot be written
						first := event
						first.Key = dedupe.Key("orders", "damaged", "")
						p := start(t, stubborn{memstore.New(nil), first.Key, err})
						defer p.Close(ctx)
						v := p.admit(first, policy)
						c := p.owns(dedupe.ResultFirst)
						if err := v.Claim.Settle(bad); err == nil {
							t.Fatal("want an error")
						}
						p.line.next("complete", lostRequest)
						p.line.next("release", lostRequest)
						c.Settle(good)
						pass(time.Minute)
						want := dedupe.Completed
						if good == dedupe.OutcomeRefused {
							want = dedupe.Failed
						}
						if r := p.record(); r.State != want {
							t.Errorf("got %+v, want %s", r, want)
						}
						if given := p.seen.count("lost release") > 0; given != (bad == dedupe.OutcomeRefused && name == "corrupt") {
							t.Errorf("the observer was told %v: only what nobody can ever write is given up", p.seen.all())
						}
						if bad == dedupe.OutcomeAccepted {
							if v := p.admit(first, policy); v.Result != dedupe.ResultDuplicate {
								t.Errorf("what is accepted and unwritten: %+v, want a duplicate here", v)
							}
						}
					})
				})
			}
		}
	}
}
