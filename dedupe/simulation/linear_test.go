package simulation

import (
	"math"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// called is an operation on one record as its caller saw it: when it began and
// when it ended, in an order that all callers share, and what it was told. A step
// of the time is one too, that all records take.
type called struct {
	asked
	told   told
	failed bool // an error: it may have happened, now or later, or never
	begun  int64
	ended  int64
}

// passes is the operation that lets tick pass.
const passes = "the time passes"

// The times of concurrent histories. They are whole ticks, so that what really
// passes, which is much less, is rounded away.
const (
	tick     = time.Hour
	oneLease = tick
	threeTTL = 3 * tick
)

// whole rounds the times of r up to ticks.
func whole(r dedupe.Record) dedupe.Record {
	up := func(d time.Duration) time.Duration { return (d + tick - 1) / tick * tick }
	r.LeaseLeft, r.Left = up(r.LeaseLeft), up(r.Left)
	return r
}

// linearizable reports whether the operations can have happened one after the
// other, each at some moment between its begin and its end, as the model has it.
// There are at most 64.
func linearizable(history []called) bool {
	type state struct {
		happened uint64
		record   dedupe.Record
	}
	dead := make(map[state]bool)
	var search func(s state) bool
	search = func(s state) bool {
		if dead[s] {
			return false
		}
		first := int64(math.MaxInt64) // until when one of the others must happen
		for i, c := range history {
			if s.happened&(1<<i) == 0 && !c.failed {
				first = min(first, c.ended)
			}
		}
		if first == math.MaxInt64 {
			return true // but for what failed, and need not have happened
		}
		for i, c := range history {
			if s.happened&(1<<i) != 0 || c.begun > first {
				continue
			}
			for _, next := range c.can(s.record) {
				if search(state{s.happened | 1<<i, next}) {
					return true
				}
			}
		}
		dead[s] = true
		return false
	}
	return search(state{})
}

// can are the records that c can have made of r, given what it was told.
func (c called) can(r dedupe.Record) []dedupe.Record {
	if c.op == passes {
		return []dedupe.Record{later(r, tick)}
	}
	var all []dedupe.Record
	for _, o := range outcomes(r, c.asked) {
		if c.failed || o.told == c.told {
			all = append(all, o.record)
		}
	}
	return all
}

// TestOrderOfCallsIsFound: histories that the check must accept, and some that it
// must refuse.
func TestOrderOfCallsIsFound(t *testing.T) {
	hold := func(token string) dedupe.Hold {
		return dedupe.Hold{Token: token, Lease: oneLease, TTL: threeTTL}
	}
	by := func(token string) dedupe.Record {
		return dedupe.Record{State: dedupe.InFlight, Token: token, Attempt: 1, LeaseLeft: oneLease, Left: threeTTL}
	}
	claim := func(token, owner string, begun, ended int64) called {
		return called{asked: asked{op: "claim", hold: hold(token)}, told: told{record: by(owner)}, begun: begun, ended: ended}
	}
	look := func(r dedupe.Record, begun, ended int64) called {
		return called{asked: asked{op: "look up"}, told: told{record: r}, begun: begun, ended: ended}
	}
	lost := func(c called) called { c.failed = true; return c }
	for _, h := range []struct {
		name  string
		calls []called
		want  bool
	}{
		{"nothing", nil, true},
		{"two claims at once, one wins", []called{claim("a", "b", 1, 4), claim("b", "b", 2, 3)}, true},
		{"two claims at once, both win", []called{claim("a", "a", 1, 4), claim("b", "b", 2, 3)}, false},
		{"the later claim wins", []called{claim("a", "b", 1, 2), claim("b", "b", 3, 4)}, false},
		{"a look during a claim sees nothing yet", []called{claim("a", "a", 1, 4), look(dedupe.Record{}, 2, 3)}, true},
		{"a look after a claim sees nothing", []called{claim("a", "a", 1, 2), look(dedupe.Record{}, 3, 4)}, false},
		{"two looks see time go back", []called{claim("a", "a", 1, 6), look(by("a"), 2, 3), look(dedupe.Record{}, 4, 5)}, false},
		{"a failed claim happened", []called{lost(claim("a", "a", 1, 2)), look(by("a"), 3, 4)}, true},
		{"a failed claim happened late", []called{lost(claim("a", "a", 1, 2)), look(dedupe.Record{}, 3, 4), look(by("a"), 5, 6)}, true},
		{"a failed claim happened too early", []called{look(by("a"), 1, 2), lost(claim("a", "a", 3, 4))}, false},
	} {
		if got := linearizable(h.calls); got != h.want {
			t.Errorf("%s: %v", h.name, got)
		}
	}
}
