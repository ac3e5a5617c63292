package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are what a run tells of itself.
type counts struct {
	tries, requests, acknowledged, events int
	duplicates, overlaps, waiting         int
	torn, thefts, decided                 int
	// repeats are requests after one that was accepted, and reworks all that did
	// the work once more; by what made them necessary.
	repeats, reworks map[cause]int
	words, steps     map[string]int
	routes           map[string]int
}

func newCounts() counts {
	return counts{repeats: make(map[cause]int), reworks: make(map[cause]int), words: make(map[string]int), steps: make(map[string]int), routes: make(map[string]int)}
}

func (j *judgement) count(e *event, arrivals []arrival) {
	c := &j.counts
	c.events++
	c.routes[e.route.name]++
	if !e.decided.at.IsZero() {
		c.decided++
	}
	c.tries += len(e.tries)
	c.requests += len(arrivals)
	c.waiting += len(j.log.waiting[e.id])
	if slices.ContainsFunc(e.tries, (*try).acknowledged) {
		c.acknowledged++
	}
	for _, tr := range e.tries {
		if tr.word == "duplicate" {
			c.duplicates++
		}
	}
	for n, a := range arrivals {
		c.words[a.word]++
		c.steps[a.step]++
		if b, ok := latest(arrivals[:n], func(b arrival) bool { return !b.accepted.IsZero() }); ok {
			c.repeats[j.cause(e, b, a)]++
		}
		if b, ok := latest(arrivals[:n], func(b arrival) bool { return !b.worked.IsZero() }); ok && !a.worked.IsZero() {
			c.reworks[j.cause(e, b, a)]++
		}
	}
}

// latest is the last of its kind.
func latest(arrivals []arrival, is func(arrival) bool) (a arrival, ok bool) {
	for _, b := range arrivals {
		if is(b) {
			a, ok = b, true
		}
	}
	return a, ok
}

func (j *judgement) summary() string {
	c := &j.counts
	faults, kinds := 0, make(map[string]int)
	for _, l := range j.w.lanes {
		for name, n := range l.dealt {
			faults += n
			kinds[name] += n
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d events, %d tries (%d duplicates), %d delivery lines, %d requests in the upstream, %d acknowledged, %d completions that waited, %d overlaps within bounds\n",
		c.events, c.tries, c.duplicates, j.log.total, c.requests, c.acknowledged, c.waiting, c.overlaps)
	fmt.Fprintf(&b, "  events by route: %v; %d decided on by the operator; %d bodies torn; %d thefts\n", list(c.routes), c.decided, c.torn, c.thefts)
	fmt.Fprintf(&b, "  requests after an accepted one, by cause: %v; works done once more: %v\n", list(c.repeats), list(c.reworks))
	fmt.Fprintf(&b, "  as the upstream was told: %v\n", list(c.words))
	fmt.Fprintf(&b, "  what the upstream did: %v\n", list(c.steps))
	fmt.Fprintf(&b, "  %d faults: %v\n", faults, list(kinds))
	fmt.Fprintf(&b, "  violations: %d", len(j.violations))
	return b.String()
}

func list[K ~string](m map[K]int) string {
	var items []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		items = append(items, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(items, ", ")
}
