package simulation

import (
	"context"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// checkAcknowledged: no 2xx for an event before the upstream accepted it.
func (w *world) checkAcknowledged(a *attempt) {
	if a.stream.event.acceptedAt < 0 {
		w.violate("no loss: %s got a 2xx, the upstream has not accepted it", a.stream.event.key)
	}
}

// checkDelivery is called when d enters the upstream.
func (w *world) checkDelivery(d *delivery, unasked bool) {
	e := d.event
	if unasked {
		if d.result != dedupe.ResultPossibleRepeat {
			w.violate("marks: %s goes through without the store as %s", e.key, d.result)
		}
		return
	}
	if w.forgot {
		return // what follows is promised by the store's memory
	}
	claimed := d.start
	if l := w.claims[d.token]; l != nil {
		claimed = l.claimedAt
	}
	forward := w.plan.policy.ForwardOnError
	if e.doneAt >= 0 && e.doneAt < claimed {
		w.violate("no repeat: %s was done at %v and reaches the upstream again", e.key, e.doneAt)
	}
	for _, before := range e.deliveries {
		if forward {
			break // it bounds what follows
		}
		if w.time() < before.workEnd {
			w.note("two at a time: %s, since %v and now", e.key, before.start)
			if !w.excused(before) && !w.excused(d) {
				w.violate("one at a time: %s is in the upstream from g%d since %v, g%d delivers it too",
					e.key, before.gateway.id, before.start, d.gateway.id)
			}
		}
		if before.start > claimed {
			continue
		}
		if before.gateway == d.gateway && before.knownAt >= 0 && before.knownAt <= d.asked {
			w.violate("no repeat: %s is delivered by g%d, which has known since %v that it is done", e.key, d.gateway.id, before.knownAt)
		}
		known := before.freedAt >= 0 && before.freedAt <= claimed
		switch {
		case d.result == dedupe.ResultFirst:
			w.violate("marks: %s is delivered as first after a delivery at %v", e.key, before.start)
		case !known && d.result != dedupe.ResultPossibleRepeat:
			w.violate("marks: %s is delivered as %s, the fate of the delivery at %v is unknown", e.key, d.result, before.start)
		case !known && w.plan.policy.Hold:
			w.violate("hold: %s is delivered though the fate of the delivery at %v is unknown", e.key, before.start)
		}
		if d.number <= before.number && before.number > 0 {
			w.violate("marks: %s is delivered as attempt %d after attempt %d", e.key, d.number, before.number)
		}
	}
}

// excused reports whether the lease of d is over now for a reason that bounds
// the promise: the upstream works on a full lease after the outcome was given
// up, or the gateway was dead, frozen or cut off while it should have renewed.
func (w *world) excused(d *delivery) bool {
	l := w.claims[d.token]
	if l == nil {
		return false
	}
	lapse := l.written + l.length
	if w.time() < lapse {
		return false
	}
	if d.settled >= 0 && d.settled+l.length <= w.time() {
		return true
	}
	g := d.gateway
	off := append(append(append([]span(nil), g.pauses...), g.cutOff...), w.outages...)
	off = append(off, l.cutOff...)
	if g.dead {
		off = append(off, span{g.diedAt, lapse})
	}
	return covered(span{l.written, lapse}, off) >= l.length/2
}

// behind is how late a process that watches the delivery of another one may
// notice its end: its slowest pace and one operation.
const behind = 500*time.Millisecond + storeTimeout + 10*time.Millisecond

// checkInFlight: a sender is told to come again only for a reason: a claim
// whose lease runs, or a delivery in this process that has not ended.
func (w *world) checkInFlight(a *attempt) {
	e := a.stream.event
	if covered(span{a.start, w.time()}, a.gateway.pauses) > 0 {
		return // its patience ran out while it was frozen
	}
	unseen, ok := a.gateway.failedAt["lookup "+e.key]
	for _, l := range w.claims {
		over := l.written + l.length
		if l.ended >= 0 {
			over = min(over, l.ended)
		}
		if l.key == e.key && (over+behind >= a.start || ok && unseen >= over) {
			return
		}
	}
	for _, d := range e.deliveries {
		if d.gateway == a.gateway && (d.settled < 0 || d.settled+2*storeTimeout >= a.start) {
			return
		}
	}
	w.violate("progress: %s is told to be in flight at %v, and nothing is", e.key, a.start)
}

// checkError: the store is said to be away only when it was.
func (w *world) checkError(a *attempt) {
	if t, ok := a.gateway.failedAt["claim "+a.stream.event.key]; !ok || t < a.start {
		w.violate("progress: %s is refused for the store, which answered", a.stream.event.key)
	}
}

// checkHeld: an event is held only by a route that wants it.
func (w *world) checkHeld(a *attempt) {
	if !w.plan.policy.Hold {
		w.violate("progress: %s is held", a.stream.event.key)
	}
}

// checkProgress is called for a failed attempt: once all is well, none fails.
func (w *world) checkProgress(a *attempt) {
	if a.start >= w.plan.quiet+calm && !w.mayBeHeld(a.stream.event) {
		w.violate("progress: an attempt of %s at %v failed, long after the last fault", a.stream.event.key, a.start)
	}
}

// mayBeHeld reports whether a claim of e, or a trace of one, was left behind.
func (w *world) mayBeHeld(e *event) bool {
	if !w.plan.policy.Hold {
		return false
	}
	for _, d := range e.deliveries {
		if d.freedAt < 0 {
			return true
		}
	}
	for _, g := range w.gateways {
		if _, failed := g.failedAt["claim "+e.key]; failed || g.dead {
			return true
		}
	}
	return false
}

// checkEnd: every event that the upstream would accept was accepted.
func (w *world) checkEnd() {
	died := false
	for _, g := range w.gateways {
		died = died || g.dead
	}
	for _, e := range w.events {
		if e.acceptedAt < 0 && !w.mayBeHeld(e) {
			w.violate("progress: %s was never accepted", e.key)
		}
		r, err := w.store.Lookup(context.Background(), e.key)
		if err != nil || r.State != dedupe.Completed && e.acceptedAt >= 0 && !died && !w.forgot {
			w.violate("backlog: %s was accepted and ends as %s, %v", e.key, r.State, err)
		}
	}
}
