package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// batch is a delivery of these events.
func batch(ids ...string) (events []dedupe.Event) {
	for i, id := range ids {
		events = append(events, dedupe.Event{Key: dedupe.Key("orders", id, ""), Mark: uint16(i)})
	}
	return events
}

func single(id string) dedupe.Event { return batch(id)[0] }

func (p process) admitAll(events []dedupe.Event, with dedupe.Policy) dedupe.BatchVerdict {
	p.t.Helper()
	v, err := p.AdmitAll(events, with)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// ownsAll admits a batch and wants it delivered as result, with that many claims
// and these indices done.
func (p process) ownsAll(events []dedupe.Event, result dedupe.Result, claims int, done ...int) dedupe.Claims {
	p.t.Helper()
	v := p.admitAll(events, policy)
	if v.Result != result || len(v.Claims) != claims || !slices.Equal(v.Done, done) || v.Claim != nil {
		p.t.Fatalf("got %+v, want %d claims as %s, and %v done", v, claims, result, done)
	}
	return v.Claims
}

// comesAgain admits a batch and wants it told to come again.
func (p process) comesAgain(events []dedupe.Event, result dedupe.Result) {
	p.t.Helper()
	begin := time.Now()
	v := p.admitAll(events, policy)
	if v.Result != result || v.Claims != nil || v.Done != nil || v.RetryAfter < time.Second {
		p.t.Fatalf("got %+v, want %s", v, result)
	}
	if time.Since(begin) != 0 {
		p.t.Errorf("it waited for %v", time.Since(begin))
	}
}

func (p process) settleAll(cs dedupe.Claims, o dedupe.Outcome) {
	p.t.Helper()
	if err := cs.Settle(o); err != nil {
		p.t.Fatal(err)
	}
}

func (p process) states(events []dedupe.Event) (states []dedupe.State) {
	for _, e := range events {
		r, err := p.line.to().Lookup(context.Background(), e.Key)
		if err != nil {
			p.t.Fatal(err)
		}
		states = append(states, r.State)
	}
	return states
}

func (p process) areAll(events []dedupe.Event, want dedupe.State) {
	p.t.Helper()
	if states := p.states(events); slices.ContainsFunc(states, func(s dedupe.State) bool { return s != want }) {
		p.t.Fatalf("the events are %v, want all %v", states, want)
	}
}

func TestABatchOfNewEventsIsDeliveredAndSettledAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for outcome, state := range map[dedupe.Outcome]dedupe.State{
			dedupe.OutcomeAccepted: dedupe.Completed, dedupe.OutcomeRefused: dedupe.Failed, dedupe.OutcomeNotSent: dedupe.Failed, dedupe.OutcomeUnanswered: dedupe.InDoubt,
		} {
			p, events := alone(t), batch("c", "a", "b")
			cs := p.ownsAll(events, dedupe.ResultFirst, 3)
			p.areAll(events, dedupe.InFlight)
			p.settleAll(cs, outcome)
			p.areAll(events, state)
		}
	})
}

// TestAVeryLargeBatchIsSettledToItsEnd, in groups as it is.
func TestAVeryLargeBatchIsSettledToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 2500 {
			ids = append(ids, fmt.Sprint(i))
		}
		p, events := alone(t), batch(ids...)
		p.settleAll(p.ownsAll(events, dedupe.ResultFirst, len(events)), dedupe.OutcomeAccepted)
		p.areAll(events, dedupe.Completed)
	})
}

func TestABatchIsADuplicateOnceAllOfItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settleAll(p.ownsAll(batch("a", "b"), dedupe.ResultFirst, 2), dedupe.OutcomeAccepted)
		pass(time.Hour)
		p.settleAll(p.ownsAll(batch("c"), dedupe.ResultFirst, 1), dedupe.OutcomeAccepted)
		done := time.Now()
		pass(time.Hour)
		v := p.admitAll(batch("a", "b", "c"), policy)
		if v.Result != dedupe.ResultDuplicate || v.Claims != nil || !v.DoneAt.Equal(done) || !slices.Equal(v.Done, []int{0, 1, 2}) {
			t.Errorf("got %+v, want a duplicate, done at %v", v, done)
		}
	})
}

// TestABatchWithSomethingNewIsDeliveredWhole: what is done stays done, and is
// said to be, whatever becomes of the rest.
func TestABatchWithSomethingNewIsDeliveredWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, outcome := range []dedupe.Outcome{dedupe.OutcomeAccepted, dedupe.OutcomeRefused, dedupe.OutcomeUnanswered} {
			p := alone(t)
			p.settleAll(p.ownsAll(batch("b", "d"), dedupe.ResultFirst, 2), dedupe.OutcomeAccepted)
			cs := p.ownsAll(batch("d", "c", "b", "a"), dedupe.ResultPossibleRepeat, 2, 2, 0)
			p.settleAll(cs, outcome)
			p.areAll(batch("b", "d"), dedupe.Completed)
			if s := p.states(batch("a", "c")); s[0] != s[1] || (s[0] == dedupe.Completed) != (outcome == dedupe.OutcomeAccepted) {
				t.Errorf("%s: the others are %v", outcome, s)
			}
		}
	})
}

func TestTheStrongestResultIsThatOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settleAll(p.ownsAll(batch("failed"), dedupe.ResultFirst, 1), dedupe.OutcomeRefused)
		p.settleAll(p.ownsAll(batch("doubted"), dedupe.ResultFirst, 1), dedupe.OutcomeUnanswered)
		pass(policy.Lease + time.Second)
		cs := p.ownsAll(batch("failed", "new"), dedupe.ResultRetry, 2)
		if cs.Attempt() != 2 {
			t.Errorf("attempt %d", cs.Attempt())
		}
		p.settleAll(cs, dedupe.OutcomeRefused)
		p.settleAll(p.ownsAll(batch("doubted", "failed", "newer"), dedupe.ResultPossibleRepeat, 3), dedupe.OutcomeAccepted)
	})
}

func TestAnIDThatIsRepeatedInABatchIsClaimedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		p.settleAll(p.ownsAll(batch("a", "b", "a", "a"), dedupe.ResultFirst, 2), dedupe.OutcomeAccepted)
		p.settleAll(p.ownsAll(batch("c", "a", "c", "a"), dedupe.ResultPossibleRepeat, 1, 1), dedupe.OutcomeAccepted)
		if n := p.line.count("claim"); n != 4 {
			t.Errorf("%d claims", n)
		}
	})
}

// TestABatchWithAnEventUnderWayComesAgain, and leaves nothing claimed: the next
// try, of the batch or of its events alone, is not in its own way.
func TestABatchWithAnEventUnderWayComesAgain(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		for _, busy := range []string{"a", "k", "z"} {
			t.Run(where+" "+busy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shared := memstore.New(nil)
					p := start(t, shared)
					other := p
					if where == "elsewhere" {
						other = start(t, shared)
					}
					events := batch("z", "a", "k", "m")
					holder := other.admit(single(busy), policy)
					p.comesAgain(events, dedupe.ResultInFlight)
					for _, e := range events {
						if e.Key == single(busy).Key {
							continue
						}
						v := p.admit(e, policy)
						if v.Claim == nil || v.Result == dedupe.ResultPossibleRepeat {
							t.Fatalf("%s is left as %+v", e.Key, v)
						}
						p.settle(v.Claim, dedupe.OutcomeRefused)
					}
					other.settle(holder.Claim, dedupe.OutcomeAccepted)
					synctest.Wait()
					v := p.admitAll(events, policy)
					if len(v.Claims) != 3 || len(v.Done) != 1 {
						t.Fatalf("got %+v", v)
					}
					p.settleAll(v.Claims, dedupe.OutcomeAccepted)
					p.areAll(events, dedupe.Completed)
				})
			})
		}
	}
}

func TestABatchWithAHeldEventComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, events := alone(t), batch("a", "b", "c")
		p.settle(p.admit(single("b"), policy).Claim, dedupe.OutcomeUnanswered)
		p.comesAgain(events, dedupe.ResultInFlight)
		pass(policy.Lease + time.Second)
		hold := policy
		hold.Hold = true
		v := p.admitAll(events, hold)
		if v.Result != dedupe.ResultHeld || v.Claims != nil || v.RetryAfter != policy.Lease {
			t.Errorf("got %+v", v)
		}
		p.areAll(batch("a", "c"), dedupe.Failed)
		p.settleAll(p.ownsAll(events, dedupe.ResultPossibleRepeat, 3), dedupe.OutcomeAccepted)
	})
}

// TestCopiesOfABatchMeetAtItsFirstEvent: the others are not even asked for.
func TestCopiesOfABatchMeetAtItsFirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		events := batch("d", "b", "c", "a")
		cs := other.ownsAll(events, dedupe.ResultFirst, 4)
		p.comesAgain(events, dedupe.ResultInFlight)
		if n := p.line.count("claim"); n != 1 {
			t.Errorf("%d claims, want one", n)
		}
		other.settleAll(cs, dedupe.OutcomeAccepted)
	})
}

// TestABatchAndASingleDeliveryAreCopiesOfEachOther.
func TestABatchAndASingleDeliveryAreCopiesOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := alone(t)
		cs := p.ownsAll(batch("a", "b"), dedupe.ResultFirst, 2)
		wait := p.copies(t.Context(), 3, single("b"), policy)
		pass(policy.Wait / 2)
		p.settleAll(cs, dedupe.OutcomeAccepted)
		for _, v := range wait() {
			if v.Result != dedupe.ResultDuplicate {
				t.Errorf("a copy that waited for the batch: %+v", v)
			}
		}
		holder := p.admit(single("c"), policy)
		p.comesAgain(batch("a", "c"), dedupe.ResultInFlight)
		p.settle(holder.Claim, dedupe.OutcomeAccepted)
		if v := p.admitAll(batch("a", "c"), policy); v.Result != dedupe.ResultDuplicate {
			t.Errorf("the batch afterwards: %+v", v)
		}
	})
}

func TestAStoreErrorReleasesTheRestOfTheBatch(t *testing.T) {
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silence": silence, "corrupt": corrupt} {
		for _, after := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, events := alone(t), batch("a", "b", "c", "d")
					p.line.next("claim", append(slices.Repeat([]fault{none}, after), f)...)
					v, err := p.AdmitAll(events, policy)
					if err == nil || v.Claims != nil || (f == corrupt) != errors.Is(err, dedupe.ErrCorrupt) {
						t.Fatalf("got %+v, %v", v, err)
					}
					pass(5 * time.Second)
					v = p.admitAll(events, policy)
					if len(v.Claims) != 4 || v.Result == dedupe.ResultPossibleRepeat {
						t.Fatalf("later: %+v", v)
					}
					p.settleAll(v.Claims, dedupe.OutcomeAccepted)
				})
			})
		}
	}
}

func TestABatchIsForwardedWithoutAStoreWhereTheRouteWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, events := alone(t), batch("a", "b")
		forward := policy
		forward.ForwardOnError = true
		p.line.from(lostRequest)
		v := p.admitAll(events, forward)
		if v.Result != dedupe.ResultPossibleRepeat || len(v.Claims) != 2 || v.StoreError == nil {
			t.Fatalf("got %+v", v)
		}
		if err := v.Claims.Settle(dedupe.OutcomeAccepted); err == nil {
			t.Error("the error is kept from the log")
		}
		// Copies are duplicates here although the store does not know.
		if v := p.admitAll(events, policy); v.Result != dedupe.ResultDuplicate {
			t.Errorf("a copy: %+v", v)
		}
		p.line.mend()
		pass(time.Minute)
		p.areAll(events, dedupe.Completed)
	})
}

func TestEveryClaimOfABatchIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		p, other := start(t, shared), start(t, shared)
		events := batch("a", "b", "c")
		cs := p.ownsAll(events, dedupe.ResultFirst, 3)
		pass(10 * policy.Lease)
		for _, e := range events {
			other.comesAgain([]dedupe.Event{e}, dedupe.ResultInFlight)
		}
		p.settleAll(cs, dedupe.OutcomeAccepted)
	})
}

// TestABatchOfADeadGatewayIsAPossibleRepeat, as a whole or in parts.
func TestABatchOfADeadGatewayIsAPossibleRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New(nil)
		dead, p := start(t, shared), start(t, shared)
		cs := dead.ownsAll(batch("a", "b", "c"), dedupe.ResultFirst, 3)
		dead.line.from(lostRequest) // it cannot renew any more
		cs[0].Settle(dedupe.OutcomeAccepted)
		p.settle(p.admit(single("new"), policy).Claim, dedupe.OutcomeAccepted)
		pass(policy.Lease + time.Second)
		p.settleAll(p.ownsAll(batch("a", "b", "c"), dedupe.ResultPossibleRepeat, 3), dedupe.OutcomeAccepted)
		p.areAll(batch("a", "b", "c"), dedupe.Completed)
	})
}

func TestALateAnswerSettlesTheWholeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, events := alone(t), batch("a", "b")
		cs := p.ownsAll(events, dedupe.ResultFirst, 2)
		p.settleAll(cs, dedupe.OutcomeUnanswered)
		pass(time.Second)
		p.settleAll(cs, dedupe.OutcomeAccepted)
		if v := p.admitAll(events, policy); v.Result != dedupe.ResultDuplicate {
			t.Errorf("got %+v", v)
		}
	})
}

// TestOverlappingBatchesKeepThePromise, whoever comes at whatever moment, with
// single deliveries among them and a store that loses requests and replies:
// every event has one owner at a time, what is known to be done is claimed no
// more, everybody gets an answer, and in the end nothing is left claimed.
func TestOverlappingBatchesKeepThePromise(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			shared := &tardyStore{Store: memstore.New(nil), rng: rand.New(rand.NewPCG(seed, 2)), loses: seed%2 == 1}
			processes := []process{start(t, shared), start(t, shared)}
			o := owners{t: t, seed: seed, owned: map[string]bool{}, done: map[string]bool{}, accepted: map[string]bool{}}
			var all sync.WaitGroup
			for range 12 {
				p := processes[rng.IntN(2)]
				var ids []string
				for range 1 + rng.IntN(4) {
					ids = append(ids, string(rune('a'+rng.IntN(6))))
				}
				pause, work := time.Duration(rng.IntN(30))*time.Millisecond, time.Duration(rng.IntN(20))*time.Millisecond
				outcome := []dedupe.Outcome{dedupe.OutcomeAccepted, dedupe.OutcomeRefused}[rng.IntN(2)]
				all.Go(func() {
					time.Sleep(pause)
					o.deliver(p, batch(ids...), work, outcome)
				})
			}
			all.Wait()
			shared.mend()
			pass(time.Minute)
			p := processes[0]
			v := p.admitAll(batch("a", "b", "c", "d", "e", "f"), policy)
			if v.Result == dedupe.ResultInFlight {
				t.Errorf("seed %d: something is left claimed", seed)
			}
			for _, i := range v.Done {
				if !o.accepted[batch("a", "b", "c", "d", "e", "f")[i].Key] {
					t.Errorf("seed %d: event %d is done, and nobody accepted it", seed, i)
				}
			}
			p.settleAll(v.Claims, dedupe.OutcomeAccepted)
		})
	}
}

// owners is what the deliveries of a test know of its events.
type owners struct {
	t    *testing.T
	seed uint64

	mu                    sync.Mutex
	owned, done, accepted map[string]bool
}

// deliver is one delivery: a batch, or a single one if it has one event.
func (o *owners) deliver(p process, events []dedupe.Event, work time.Duration, outcome dedupe.Outcome) {
	o.mu.Lock()
	before := maps.Clone(o.done)
	o.mu.Unlock()
	var claims dedupe.Claims
	var free []string // of the events, those that are claimed
	if len(events) == 1 {
		v, err := p.Admit(context.Background(), events[0], policy)
		if err != nil || v.Claim == nil {
			return
		}
		claims, free = dedupe.Claims{v.Claim}, []string{events[0].Key}
	} else {
		v, err := p.AdmitAll(events, policy)
		if err != nil || v.Claims == nil {
			return
		}
		claims = v.Claims
		done := map[string]bool{}
		for _, i := range v.Done {
			done[events[i].Key] = true
		}
		for _, e := range events {
			if !done[e.Key] && !slices.Contains(free, e.Key) {
				free = append(free, e.Key)
			}
		}
	}
	if len(free) != len(claims) {
		o.t.Errorf("seed %d: %d claims on %v", o.seed, len(claims), free)
	}
	o.note(free, func(key string) {
		if o.owned[key] || before[key] {
			o.t.Errorf("seed %d: %s is owned %v, and done %v", o.seed, key, o.owned[key], before[key])
		}
		o.owned[key] = true
	})
	time.Sleep(work)
	o.note(free, func(key string) {
		o.owned[key], o.accepted[key] = false, o.accepted[key] || outcome == dedupe.OutcomeAccepted
	})
	if err := claims.Settle(outcome); err == nil && outcome == dedupe.OutcomeAccepted {
		o.note(free, func(key string) { o.done[key] = true })
	}
}

func (o *owners) note(keys []string, do func(string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		do(k)
	}
}

// tardyStore takes its time, and loses requests and replies, at random.
type tardyStore struct {
	dedupe.Store
	mu    sync.Mutex
	rng   *rand.Rand
	loses bool
}

func (s *tardyStore) mend() { s.mu.Lock(); defer s.mu.Unlock(); s.loses = false }

// travel is the way to the store or back; it reports whether what travels gets
// lost.
func (s *tardyStore) travel() bool {
	s.mu.Lock()
	d, lost := time.Duration(s.rng.IntN(4))*time.Millisecond, s.loses && s.rng.IntN(12) == 0
	s.mu.Unlock()
	time.Sleep(d)
	return lost
}

func (s *tardyStore) do(op func() error) error {
	if s.travel() {
		return errAway
	}
	err := op()
	if s.travel() {
		return errAway
	}
	return err
}

func (s *tardyStore) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (r dedupe.Record, err error) {
	err = s.do(func() (err error) { r, err = s.Store.Claim(ctx, key, h, takeover); return err })
	return r, err
}

func (s *tardyStore) Release(ctx context.Context, key string, h dedupe.Hold) error {
	return s.do(func() error { return s.Store.Release(ctx, key, h) })
}

func (s *tardyStore) Complete(ctx context.Context, key string, d dedupe.Done) error {
	return s.do(func() error { return s.Store.Complete(ctx, key, d) })
}
