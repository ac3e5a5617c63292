package faults

import (
	"slices"
)

// checkLog: the gateways' log says what senders and upstream saw. Every answer
// has one line, unless its gateway was killed before it was written.
func (j *judgement) checkLog(e *event, arrivals []arrival) {
	for _, tr := range e.tries {
		lines := j.log.deliveries[tr.id]
		switch {
		case tr.torn: // nobody knows whose it was
		case len(lines) > 1:
			j.violate(e, "log: %s has %d lines", tr.id, len(lines))
		case len(lines) == 1:
			j.checkLine(e, tr, lines[0], arrivals)
		case tr.err == nil && j.nextDeath(tr.gateway, tr.start, ever) == ever:
			j.violate(e, "log: %s was answered %d %s and has no line", tr.id, tr.status, tr.word)
		}
	}
}

// checkLine compares one line with what the others saw of the same try.
func (j *judgement) checkLine(e *event, tr *try, l line, arrivals []arrival) {
	result := l.entry.Text("result")
	if tr.err == nil && (tr.word != "" && tr.word != result || tr.status != int(l.entry.Number("status"))) {
		j.violate(e, "log: %s was answered %d %s, the log says %v", tr.id, tr.status, tr.word, l)
	}
	n := slices.IndexFunc(arrivals, func(a arrival) bool { return a.try == tr })
	if n >= 0 && arrivals[n].word != result {
		j.violate(e, "log: %s reached the upstream as %q, the log says %v", tr.id, arrivals[n].word, l)
	}
	if l.entry.Text("outcome") == "accepted" && (n < 0 || arrivals[n].accepted.IsZero()) {
		j.violate(e, "log: %s was not accepted, the log says %v", tr.id, l)
	}
}
