package faults

import "time"

// unasked reports whether the gateway let a delivery through without the store's
// word, as the route wants it while the store is away: it counts no earlier try.
// Its mark says that it may be a repeat; nothing else binds it, and it binds no
// other delivery.
func (j *judgement) unasked(e *event, a arrival) bool {
	if !e.route.forwards || a.word != "possible-repeat" {
		return false
	}
	if lines := j.log.deliveries[a.try.id]; len(lines) > 0 {
		return lines[0].entry.Number("attempt") == 1
	}
	return j.w.spans.during(a.try.gateway, e.route, a.try.start, a.start) != nil // killed over it
}

// forgotten reports whether what the store knew of an event at one time was lost
// until another: with all its data, or by an operator's word.
func (j *judgement) forgotten(e *event, from, to time.Time) bool {
	d := e.decided
	return j.w.spans.lost(from, to) || !d.at.IsZero() && !d.done && !d.again && from.Before(d.at) && d.at.Before(to)
}

// checkHeld: where a route holds, nothing follows a delivery that the upstream did
// not refuse, whatever has happened, unless an operator said so.
func (j *judgement) checkHeld(e *event, arrivals []arrival, n int) {
	a := arrivals[n]
	if !e.route.holds || !a.refused.IsZero() {
		return
	}
	for _, b := range arrivals[:n] {
		decided := !e.decided.at.IsZero() && e.decided.at.Before(a.start)
		if b.refused.IsZero() && !decided && !j.w.spans.lost(b.try.start, a.start) {
			j.violate(e, "hold: %s reaches the upstream as %q after %s, which it %s", a.try.id, a.word, b.try.id, b.fate())
			return
		}
	}
}

// checkTorn: a delivery whose body was not whole reaches nothing.
func (j *judgement) checkTorn(e *event, arrivals []arrival) {
	for _, a := range arrivals {
		if a.try.torn {
			j.violate(e, "torn: %s reaches the upstream", a.try.id)
		}
	}
	for _, tr := range e.tries {
		if tr.torn {
			j.counts.torn++
			if tr.acknowledged() {
				j.violate(e, "torn: %s got %d %s", tr.id, tr.status, tr.word)
			}
		}
	}
}
