package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// moment is a line of a history.
type moment struct {
	at   time.Time
	text string
}

// history merges all ledgers on one event, with the faults around it.
func (j *judgement) history(id string) string {
	e := j.w.events[slices.IndexFunc(j.w.events, func(e *event) bool { return e.id == id })]
	var all []moment
	say := func(at time.Time, format string, args ...any) {
		if !at.IsZero() && at != ever {
			all = append(all, moment{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, tr := range e.tries {
		say(tr.start, "sender    %s to gateway %d begins (replay: %t)", tr.id, tr.gateway, tr.replay)
		say(tr.end, "sender    %s gets %d %s %v", tr.id, tr.status, tr.word, errorText(tr.err))
	}
	for _, a := range j.arrivals(e) {
		say(a.start, "upstream  %s comes in as %q; it %s", a.try.id, a.word, a.step)
		say(a.worked, "upstream  %s: the work is done", a.try.id)
		say(a.accepted, "upstream  %s: accepted", a.try.id)
		say(a.refused, "upstream  %s: refused", a.try.id)
		say(a.broke, "upstream  %s: connection broken off", a.try.id)
		say(a.end, "upstream  %s ends", a.try.id)
	}
	for _, l := range j.log.events[id] {
		say(l.at, "gateway %d %s", l.gateway, l)
	}
	j.addFaults(e, say)
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "\t%8.3f  %s\n", m.at.Sub(j.w.start).Seconds(), m.text)
	}
	return b.String()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// addFaults adds the faults during an event's life.
func (j *judgement) addFaults(e *event, say func(time.Time, string, ...any)) {
	if len(e.tries) == 0 {
		return
	}
	first, last := e.tries[0].start, e.tries[len(e.tries)-1].end
	for _, sp := range j.w.spans.all {
		if sp.to.Before(first.Add(-aftermath)) || sp.from.After(last) {
			continue
		}
		where := ""
		if sp.gateway != everywhere {
			where = fmt.Sprintf(" (gateway %d)", sp.gateway)
		}
		say(sp.from, "fault     %s%s begins", sp.what, where)
		say(sp.to, "fault     %s%s is over", sp.what, where)
	}
}
