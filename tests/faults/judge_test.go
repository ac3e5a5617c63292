package faults

import (
	"fmt"
	"slices"
	"time"
)

// judgement puts the ledgers together.
type judgement struct {
	w          *world
	log        *logbook
	tries      map[string]*try
	violations []violation
	counts     counts
}

// violation is a promise broken.
type violation struct {
	event string
	text  string
}

// arrival is a request in the upstream, and the try that it came from.
type arrival struct {
	*request
	try *try
}

// judge checks every event.
func (w *world) judge() *judgement {
	j := &judgement{w: w, log: w.readLogs(), tries: make(map[string]*try), counts: newCounts()}
	for _, e := range w.events {
		for _, tr := range e.tries {
			j.tries[tr.id] = tr
		}
	}
	for _, e := range w.events {
		arrivals := j.arrivals(e)
		j.checkAcknowledged(e, arrivals)
		j.checkEnd(e, arrivals)
		j.checkDone(e, arrivals)
		j.checkTorn(e, arrivals)
		j.checkThefts(e)
		for n := range arrivals {
			j.checkMark(e, arrivals, n)
			j.checkCauses(e, arrivals, n)
			j.checkHeld(e, arrivals, n)
			j.checkAlone(e, arrivals, n)
		}
		j.checkLog(e, arrivals)
		j.count(e, arrivals)
	}
	return j
}

func (j *judgement) violate(e *event, format string, args ...any) {
	j.violations = append(j.violations, violation{e.id, fmt.Sprintf(format, args...)})
}

// arrivals are the requests of an event, in the order in which they came.
func (j *judgement) arrivals(e *event) (all []arrival) {
	j.w.upstream.mu.Lock()
	defer j.w.upstream.mu.Unlock()
	for _, q := range j.w.upstream.ledger[e.id] {
		tr := j.tries[q.try]
		if tr == nil {
			j.violate(e, "unknown: the upstream got a request that no sender sent: %q", q.try)
			continue
		}
		c := *q
		if c.end.IsZero() {
			c.end = ever // it still works
		}
		all = append(all, arrival{&c, tr})
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return a.start.Compare(b.start) })
	return all
}

// checkAcknowledged: no loss. A sender gets a 2xx only after the upstream has
// answered the event with a complete success, or an operator has said that its
// work is done.
func (j *judgement) checkAcknowledged(e *event, arrivals []arrival) {
	for _, tr := range e.tries {
		accepted := slices.ContainsFunc(arrivals, func(a arrival) bool { return !a.accepted.IsZero() && a.accepted.Before(tr.end) })
		if tr.acknowledged() && !accepted && !(e.decided.done && e.decided.at.Before(tr.end)) {
			j.violate(e, "no loss: %s got %d %s, and the upstream had not accepted the event", tr.id, tr.status, tr.word)
		}
	}
}

// checkEnd: progress. Every event is accepted in the end, and acknowledged.
func (j *judgement) checkEnd(e *event, arrivals []arrival) {
	if !e.decided.done && !slices.ContainsFunc(arrivals, func(a arrival) bool { return !a.accepted.IsZero() }) {
		j.violate(e, "progress: it was never accepted")
	}
	if !slices.ContainsFunc(e.tries, func(tr *try) bool { return tr.acknowledged() && !tr.replay }) {
		j.violate(e, "progress: its sender was never told so")
	}
}

// fact is that an event is certainly known to be done: by the store, or by one
// gateway that could not tell the store.
type fact struct {
	gateway  int // everywhere: the store
	from, at time.Time
	until    time.Time
	source   string
}

// facts are what is certain about an event's end, from what senders were told.
func (j *judgement) facts(e *event) (facts []fact) {
	for _, tr := range e.tries {
		if !tr.acknowledged() {
			continue
		}
		f := fact{everywhere, tr.start, tr.end, ever, fmt.Sprintf("%s got %d %s", tr.id, tr.status, tr.word)}
		for _, wt := range j.log.waiting[e.id] {
			if wt.gateway == tr.gateway && wt.from.Before(tr.end.Add(aftermath)) && wt.until.After(tr.start) {
				f.gateway, f.until = wt.gateway, wt.until
				if f.at.Before(wt.from) { // it may be that of a delivery that the route let pass unasked
					f.at = wt.from
				}
				if !j.w.spools {
					f.until = j.nextDeath(wt.gateway, f.at, wt.until)
				}
			}
		}
		facts = append(facts, f)
	}
	if e.decided.done {
		facts = append(facts, fact{everywhere, e.decided.at, e.decided.at, ever, "an operator said so"})
	}
	for _, wt := range j.log.waiting[e.id] {
		if wt.written {
			facts = append(facts, fact{everywhere, wt.until.Add(-aftermath), wt.until, ever, "a completion that waited was written"})
		}
	}
	return facts
}

// nextDeath is when a gateway is killed after a time, or until.
func (j *judgement) nextDeath(gateway int, after, until time.Time) time.Time {
	for _, sp := range j.w.spans.all {
		if sp.cause == killed && sp.gateway == gateway && sp.from.After(after) && sp.from.Before(until) {
			until = sp.from
		}
	}
	return until
}

// checkDone: no repeat. What is certainly done before a try begins keeps that
// try from the upstream, unless the store has lost its data since.
func (j *judgement) checkDone(e *event, arrivals []arrival) {
	facts := j.facts(e)
	for _, a := range arrivals {
		for _, f := range facts {
			known := f.at.Before(a.try.start) && a.start.Before(f.until) && (f.gateway == everywhere || f.gateway == a.try.gateway)
			if known && (f.gateway != everywhere || !j.w.spans.lost(f.from, a.start) && !j.unasked(e, a)) {
				j.violate(e, "no repeat: %s reaches the upstream as %q after the event was done (%s)", a.try.id, a.word, f.source)
				break
			}
		}
	}
}

// before are the earlier arrivals whose claims were certainly earlier, too, and
// which no loss of the store's data has wiped out. Of two claims, the later one
// took the event over at the earliest when the lease of the other had ended: a
// request that began within a lease of the other's try was claimed first.
func (j *judgement) before(e *event, arrivals []arrival, n int) (all []arrival) {
	a := arrivals[n]
	for _, b := range arrivals[:n] {
		if b.start.Before(a.try.start.Add(lease)) && !j.forgotten(e, b.try.start, a.start) && !j.unasked(e, b) {
			all = append(all, b)
		}
	}
	return all
}

// checkMark: what the gateway calls a delivery is what can be known of it.
func (j *judgement) checkMark(e *event, arrivals []arrival, n int) {
	a := arrivals[n]
	if !slices.Contains([]string{"first", "retry", "possible-repeat"}, a.word) {
		j.violate(e, "marks: %s reaches the upstream as %q", a.try.id, a.word)
		return
	}
	for _, l := range j.log.deliveries[a.try.id] {
		if a.word == "possible-repeat" && l.entry.Number("attempt") == 1 && !e.route.forwards {
			j.violate(e, "marks: %s is a possible repeat of nothing", a.try.id)
		}
	}
	for _, b := range j.before(e, arrivals, n) {
		if a.word == "first" || a.word == "retry" && b.refused.IsZero() {
			j.violate(e, "marks: %s reaches the upstream as %q, after %s, which it %s", a.try.id, a.word, b.try.id, b.fate())
			return
		}
	}
}

// fate is how the upstream ended a request.
func (a arrival) fate() string {
	switch {
	case !a.accepted.IsZero():
		return "accepted"
	case !a.refused.IsZero():
		return "refused"
	}
	return "did not answer completely"
}

// checkCauses: a delivery follows one that was not refused only if the outcome
// of that could not be known, and never within its lease.
func (j *judgement) checkCauses(e *event, arrivals []arrival, n int) {
	a := arrivals[n]
	if j.unasked(e, a) || e.decided.again && e.decided.at.Before(a.start) {
		return
	}
	for _, b := range j.before(e, arrivals, n) {
		switch {
		case !b.refused.IsZero():
		case a.start.Before(b.try.start.Add(lease)):
			j.violate(e, "one at a time: %s reaches the upstream as %q within the lease of %s, which it %s", a.try.id, a.word, b.try.id, b.fate())
			return
		case j.cause(e, b, a) == none:
			j.violate(e, "no repeat: %s reaches the upstream as %q after %s, which it %s; nothing had gone wrong", a.try.id, a.word, b.try.id, b.fate())
			return
		}
	}
}

// cause is why b's outcome could not be known when a was let through.
func (j *judgement) cause(e *event, b, a arrival) cause {
	if j.w.spans.lost(b.try.start, a.start) {
		return loss
	}
	if b.accepted.IsZero() || j.timedOut(b) {
		return upstreamFault
	}
	if j.unasked(e, a) || j.unasked(e, b) {
		return away
	}
	if sp := j.disturbed(e, b, a); sp != nil {
		return sp.cause
	}
	return none
}

// timedOut reports whether the gateway's time for a delivery was over before it
// had read the answer, be it that the upstream was slow or the whole machine.
func (j *judgement) timedOut(b arrival) bool {
	return slices.ContainsFunc(j.log.deliveries[b.try.id], func(l line) bool {
		return l.entry.Text("outcome") == "in-doubt" && l.entry.Number("duration") >= upstreamTimeout.Seconds()
	})
}

// disturbed is what may have cost one of two deliveries its lease: the one that
// came in first, or the other one, if that may have been claimed before it.
func (j *judgement) disturbed(e *event, b, a arrival) *span {
	if sp := j.w.spans.during(b.try.gateway, e.route, b.try.start, a.start); sp != nil {
		return sp
	}
	if b.start.Before(a.try.start.Add(lease)) {
		return nil
	}
	return j.w.spans.during(a.try.gateway, e.route, a.try.start, a.start)
}

// checkAlone: one at a time. Two requests of one event are in the upstream at
// once only if the first one's gateway could not keep its lease, or the upstream
// works on a full lease after the gateway has given it up.
func (j *judgement) checkAlone(e *event, arrivals []arrival, n int) {
	a := arrivals[n]
	for _, b := range arrivals[:n] {
		if !b.end.After(a.start) {
			continue
		}
		givenUp := b.try.start.Add(upstreamTimeout)
		if !b.broke.IsZero() {
			givenUp = b.broke
		}
		switch {
		case j.w.spans.lost(b.try.start, a.start):
		case j.unasked(e, a), j.unasked(e, b):
		case !a.start.Before(givenUp.Add(lease)):
		case j.disturbed(e, b, a) != nil:
		default:
			j.violate(e, "one at a time: %s reaches the upstream while it works on %s", a.try.id, b.try.id)
			continue
		}
		j.counts.overlaps++
	}
}
