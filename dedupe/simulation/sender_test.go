package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// event is one event of the sender and what really became of it.
type event struct {
	key        string
	mark       uint16
	doneAt     time.Duration // when done was written to the store; -1 before
	acceptedAt time.Duration // when a gateway had an accepted answer; -1 before
	deliveries []*delivery
}

// stream is a sender that has one event to deliver and follows its ladder
// until the first 2xx. Copies are several streams with one event.
type stream struct {
	id       int
	event    *event
	sent     int
	ladder   []time.Duration
	answered bool // with a 2xx
}

// attempt is one request of a sender.
type attempt struct {
	w       *world
	id      int64
	stream  *stream
	gateway *gateway
	start   time.Duration
	over    bool
	cancel  context.CancelFunc
}

// senders plans all streams of the history.
func (w *world) senders() {
	id := 0
	begin := func(e *event, t time.Duration, gaps []time.Duration) {
		s := &stream{id: id, event: e, ladder: gaps}
		id++
		w.at(t, func() { w.attempt(s) })
	}
	for n := range w.plan.events {
		e := &event{key: dedupe.Key("sim", fmt.Sprint("evt_", n), ""), mark: uint16(n + 1), doneAt: -1, acceptedAt: -1}
		w.events[e.key] = e
		start := w.between(0, 5*time.Second)
		for range 1 + w.rng.IntN(3) {
			t := start + w.between(0, 4*time.Millisecond)
			if w.chance(0.3) {
				t = start + w.between(0, 2*leaseTime)
			}
			begin(e, t, ladder)
		}
		if w.chance(0.4) { // an operator sends it once more
			begin(e, w.between(0, 20*time.Hour), nil)
		}
	}
}

func (w *world) attempt(s *stream) {
	g := w.slots[w.rng.IntN(len(w.slots))]
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{w: w, id: int64(len(w.attempts)), stream: s, gateway: g, start: w.time(), cancel: cancel}
	w.attempts = append(w.attempts, a)
	s.sent++
	w.note("sender %d sends %s to g%d (attempt %d)", s.id, s.event.key, g.id, s.sent)
	if g.dead {
		a.fail("connection refused")
		return
	}
	w.after(attemptTimeout, func() {
		if !a.over {
			a.fail("time-out")
			g.act(a.cancel)
		}
	})
	w.after(w.between(0, time.Millisecond), func() {
		g.act(func() {
			go func() {
				v, err := g.gate.Admit(ctx, dedupe.Event{Key: s.event.key, Mark: s.event.mark}, g.policy)
				w.post(post{kind: postAdmitted, gate: g.id, id: a.id, do: func() { w.admitted(a, v, err) }})
			}()
		})
	})
}

// admitted is the handler with its verdict.
func (w *world) admitted(a *attempt, v dedupe.Verdict, err error) {
	w.note("g%d: %s of sender %d: %s attempt %d, error %v", a.gateway.id, a.stream.event.key, a.stream.id, v.Result, attemptOf(v), err)
	switch {
	case v.Claim != nil:
		w.deliver(a, v)
	case err != nil:
		w.checkError(a)
		a.answer(false)
	case v.Result == dedupe.ResultDuplicate:
		a.answer(true)
	case v.Result == dedupe.ResultInFlight:
		w.checkInFlight(a)
		if w.mutant.forwardsWaiting {
			w.deliver(a, v)
			return
		}
		a.answer(w.mutant.acknowledgesInFlight)
	default:
		w.checkHeld(a)
		a.answer(false)
	}
}

func attemptOf(v dedupe.Verdict) int {
	if v.Claim == nil {
		return 0
	}
	return v.Claim.Attempt()
}

// answer is the gateway's answer, which may come after the sender has left.
func (a *attempt) answer(ok bool) {
	w := a.w
	if ok {
		w.checkAcknowledged(a)
	}
	if a.over {
		return
	}
	if !ok {
		a.fail("5xx")
		return
	}
	w.note("sender %d has its 2xx for %s", a.stream.id, a.stream.event.key)
	a.over, a.stream.answered = true, true
}

// fail is an attempt that the sender counts as failed; it comes again.
func (a *attempt) fail(why string) {
	if a.over {
		return
	}
	w, s := a.w, a.stream
	w.note("sender %d failed: %s", s.id, why)
	a.over = true
	w.checkProgress(a)
	if len(s.ladder) == 0 {
		return
	}
	gap := s.ladder[0]
	s.ladder = s.ladder[1:]
	w.after(gap+w.between(0, 100*time.Millisecond), func() { w.attempt(s) })
}
