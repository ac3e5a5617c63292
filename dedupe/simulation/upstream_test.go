package simulation

import (
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// behaviour is what the upstream does with one delivery.
type behaviour int

const (
	accepts     behaviour = iota // answers 2xx
	refuses                      // answers anything else
	notReached                   // the connection is refused
	resets                       // works, or not, and the connection breaks
	acceptsSlow                  // after the sender has gone
	refusesSlow                  //
	acceptsLate                  // after the gateway's time-out; the answer comes in after all
	refusesLate                  //
	overruns                     // works on after the gateway's time-out; nobody hears of it
	behaviours                   // how many there are
)

// delivery is one request in the upstream.
type delivery struct {
	id      int64
	event   *event
	gateway *gateway
	token   string
	result  dedupe.Result
	number  int           // the claim's attempt
	asked   time.Duration // when its sender sent it
	start   time.Duration
	workEnd time.Duration // until when the upstream is busy with it
	settled time.Duration // when the handler had its outcome; -1 before
	freedAt time.Duration // when it was known to have failed; -1 before
	knownAt time.Duration // when its process had settled it as accepted; -1 before
}

// deliver is the handler that calls the upstream and settles the claim.
func (w *world) deliver(a *attempt, v dedupe.Verdict) {
	e := a.stream.event
	d := &delivery{
		id: int64(len(e.deliveries)), event: e, gateway: a.gateway, token: a.gateway.claimed[e.key], result: v.Result,
		number: attemptOf(v), asked: a.start, start: w.time(), settled: -1, freedAt: -1, knownAt: -1,
	}
	b, took, outcome := w.draw()
	d.workEnd = d.start + took
	if b == notReached {
		d.workEnd = d.start
	}
	w.note("upstream: %s from g%d as %s, will be %s after %v", e.key, d.gateway.id, d.result, outcome, took)
	w.checkDelivery(d, v.StoreError != nil)
	e.deliveries = append(e.deliveries, d)

	settle := func(o dedupe.Outcome, late bool) {
		w.outcome(d, o)
		if v.Claim == nil { // only a mutant delivers without a claim
			a.answer(o == dedupe.OutcomeAccepted)
			return
		}
		go func() {
			v.Claim.Settle(o)
			id := 2 * d.id
			if late {
				id++
			}
			w.post(post{kind: postSettled, gate: d.gateway.id, name: e.key, id: id, do: func() {
				if o == dedupe.OutcomeAccepted {
					d.knownAt = w.time()
				}
				if !late {
					a.answer(o == dedupe.OutcomeAccepted)
				}
			}})
		}()
	}
	if w.mutant.completesFirst {
		go v.Claim.Settle(dedupe.OutcomeAccepted)
	}
	if took <= upstreamTimeout {
		w.after(took, func() { d.gateway.act(func() { settle(outcome, false) }) })
		return
	}
	w.after(upstreamTimeout, func() { d.gateway.act(func() { settle(dedupe.OutcomeUnanswered, false) }) })
	if outcome != dedupe.OutcomeUnanswered {
		w.after(took, func() { d.gateway.act(func() { settle(outcome, true) }) })
	}
}

// outcome notes what the gateway knows of d now.
func (w *world) outcome(d *delivery, o dedupe.Outcome) {
	if d.settled < 0 {
		w.note("g%d: the outcome of %s is %s", d.gateway.id, d.event.key, o)
		d.settled = w.time()
	} else {
		w.note("g%d: the outcome of %s is %s, late", d.gateway.id, d.event.key, o)
	}
	switch o {
	case dedupe.OutcomeAccepted:
		if d.event.acceptedAt < 0 {
			d.event.acceptedAt = w.time()
		}
	case dedupe.OutcomeRefused, dedupe.OutcomeNotSent:
		d.freedAt = w.time()
	}
}

// draw draws what the upstream does, how long that takes, and what the gateway
// hears of it in the end.
func (w *world) draw() (behaviour, time.Duration, dedupe.Outcome) {
	fast := w.between(time.Millisecond, 500*time.Millisecond)
	if w.time() >= w.plan.quiet {
		return accepts, fast, dedupe.OutcomeAccepted
	}
	total := 0
	for _, weight := range w.plan.upstream {
		total += weight
	}
	n := w.rng.IntN(total)
	b := behaviour(0)
	for ; n >= w.plan.upstream[b]; b++ {
		n -= w.plan.upstream[b]
	}
	slow := w.between(attemptTimeout, upstreamTimeout-time.Second)
	late := w.between(upstreamTimeout+time.Second, 5*upstreamTimeout)
	switch b {
	case accepts:
		return b, fast, dedupe.OutcomeAccepted
	case refuses:
		return b, fast, dedupe.OutcomeRefused
	case notReached:
		return b, fast, dedupe.OutcomeNotSent
	case resets:
		return b, fast, dedupe.OutcomeUnanswered
	case acceptsSlow:
		return b, slow, dedupe.OutcomeAccepted
	case refusesSlow:
		return b, slow, dedupe.OutcomeRefused
	case acceptsLate:
		return b, late, dedupe.OutcomeAccepted
	case refusesLate:
		return b, late, dedupe.OutcomeRefused
	}
	return b, late, dedupe.OutcomeUnanswered
}
