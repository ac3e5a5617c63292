package simulation

import (
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// asked is one operation on a record, as a store is asked for it.
type asked struct {
	op   string // claim, take over, renew, complete, release, doubt or look up
	hold dedupe.Hold
	done dedupe.Done
}

// told is what the store answers.
type told struct {
	record dedupe.Record // of a claim or a look
	owned  bool          // of a renewal
}

// transition is the state machine written out: what an operation makes of a
// record, and what its caller is told. It shares no code with any store.
func transition(r dedupe.Record, a asked) (dedupe.Record, told) {
	h := a.hold
	mine := r.Token == h.Token
	lapsed := r.LeaseLeft == 0
	under := func(state dedupe.State, attempt int, doubted bool) dedupe.Record {
		n := dedupe.Record{State: state, Attempt: attempt, Doubted: doubted, Left: h.TTL}
		if state == dedupe.InFlight || state == dedupe.InDoubt {
			n.Token, n.LeaseLeft = h.Token, h.Lease
		}
		return n
	}
	switch a.op {
	case "claim", "take over":
		switch r.State {
		case dedupe.Absent:
			r = under(dedupe.InFlight, 1, false)
		case dedupe.Failed:
			r = under(dedupe.InFlight, r.Attempt+1, r.Doubted)
		case dedupe.InFlight:
			if mine {
				r = under(dedupe.InFlight, r.Attempt, r.Doubted)
			} else if lapsed && a.op == "take over" {
				r = under(dedupe.InFlight, r.Attempt+1, true)
			}
		case dedupe.InDoubt:
			if lapsed && a.op == "take over" {
				r = under(dedupe.InFlight, r.Attempt+1, true)
			}
		}
		return r, told{record: r}
	case "look up":
		return r, told{record: r}
	case "renew":
		switch {
		case r.State == dedupe.Absent:
			return under(dedupe.InFlight, h.Attempt, h.Doubted), told{owned: true}
		case r.State == dedupe.InFlight && mine:
			return under(dedupe.InFlight, r.Attempt, r.Doubted), told{owned: true}
		}
	case "complete":
		if r.State != dedupe.Completed {
			r = dedupe.Record{State: dedupe.Completed, Mark: a.done.Mark, Left: a.done.TTL}
		}
	case "release":
		switch {
		case r.State == dedupe.Absent && h.Doubted:
			r = under(dedupe.Failed, h.Attempt, true)
		case (r.State == dedupe.InFlight || r.State == dedupe.InDoubt) && mine:
			r = under(dedupe.Failed, r.Attempt, r.Doubted)
		}
	case "doubt":
		switch {
		case r.State == dedupe.Absent:
			r = under(dedupe.InDoubt, h.Attempt, true)
		case (r.State == dedupe.InFlight || r.State == dedupe.InDoubt) && mine:
			r = under(dedupe.InDoubt, r.Attempt, true)
		}
	}
	return r, told{}
}

// outcomes are all that the contract lets an operation make of a record: beside
// the transition, a claim repeated by its owner may leave the lease as it is, and
// completing a done event may start its time to live afresh.
func outcomes(r dedupe.Record, a asked) []outcome {
	to, said := transition(r, a)
	all := []outcome{{to, said}}
	switch {
	case (a.op == "claim" || a.op == "take over") && r.OwnedBy(a.hold.Token):
		all = append(all, outcome{r, told{record: r}})
	case a.op == "complete" && r.State == dedupe.Completed:
		all = append(all, outcome{dedupe.Record{State: dedupe.Completed, Mark: a.done.Mark, Left: a.done.TTL}, told{}})
	}
	return all
}

// outcome is a record after an operation, and what the caller is told.
type outcome struct {
	record dedupe.Record
	told   told
}

// later is r when d has passed.
func later(r dedupe.Record, d time.Duration) dedupe.Record {
	r.LeaseLeft = max(0, r.LeaseLeft-d)
	r.Left -= d
	if r.Left <= 0 {
		return dedupe.Record{}
	}
	return r
}
