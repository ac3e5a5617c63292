package simulation

import (
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// The times of the model: a step is half a lease, and a record lives for five.
const (
	modelStep  = 10 * time.Second
	modelLease = 2 * modelStep
	modelTTL   = 5 * modelStep
	modelMark  = 7
)

// step is one thing that can happen to a record.
type step struct {
	op  string
	who string // a token
}

// claimant is one side of the steps: what it knows of its claim.
type claimant struct {
	attempt int
	doubted bool
}

// model is the state machine written out: a record, the claimants, and what
// each step makes of them. It shares no code with any store.
type model struct {
	record    dedupe.Record
	claimants map[string]claimant
}

// reply is what a step tells its caller.
type reply struct {
	record dedupe.Record // of a claim or a look
	owned  bool          // of a renewal
}

// next is the transition table.
func (m model) next(s step) (model, reply) {
	r := m.record
	me := m.claimants[s.who]
	mine := r.Token == s.who && s.who != ""
	live := r.LeaseLeft > 0

	fresh := func(state dedupe.State, attempt int, doubted bool) dedupe.Record {
		n := dedupe.Record{State: state, Attempt: attempt, Doubted: doubted, Left: modelTTL}
		if state == dedupe.InFlight || state == dedupe.InDoubt {
			n.Token, n.LeaseLeft = s.who, modelLease
		}
		return n
	}
	out := reply{}
	switch s.op {
	case "claim", "take over":
		switch r.State {
		case dedupe.Absent:
			r = fresh(dedupe.InFlight, 1, false)
		case dedupe.Failed:
			r = fresh(dedupe.InFlight, r.Attempt+1, r.Doubted)
		case dedupe.InFlight:
			if mine {
				r = fresh(dedupe.InFlight, r.Attempt, r.Doubted)
			} else if !live && s.op == "take over" {
				r = fresh(dedupe.InFlight, r.Attempt+1, true)
			}
		case dedupe.InDoubt:
			if !live && s.op == "take over" {
				r = fresh(dedupe.InFlight, r.Attempt+1, true)
			}
		}
		if r.State == dedupe.InFlight && r.Token == s.who {
			m = m.with(s.who, claimant{r.Attempt, r.Doubted})
		}
		out.record = r
	case "renew":
		switch {
		case r.State == dedupe.Absent:
			r = fresh(dedupe.InFlight, me.attempt, me.doubted)
			out.owned = true
		case r.State == dedupe.InFlight && mine:
			r = fresh(dedupe.InFlight, r.Attempt, r.Doubted)
			out.owned = true
		}
	case "complete":
		if r.State != dedupe.Completed {
			r = dedupe.Record{State: dedupe.Completed, Mark: modelMark, Left: modelTTL}
		}
	case "release":
		switch {
		case r.State == dedupe.Absent && me.doubted:
			r = fresh(dedupe.Failed, me.attempt, true)
		case (r.State == dedupe.InFlight || r.State == dedupe.InDoubt) && mine:
			r = fresh(dedupe.Failed, r.Attempt, r.Doubted)
		}
	case "doubt":
		switch {
		case r.State == dedupe.Absent:
			r = fresh(dedupe.InDoubt, me.attempt, true)
		case (r.State == dedupe.InFlight || r.State == dedupe.InDoubt) && mine:
			r = fresh(dedupe.InDoubt, r.Attempt, true)
		}
	case "wait":
		r.LeaseLeft = max(0, r.LeaseLeft-modelStep)
		r.Left -= modelStep
		if r.Left <= 0 {
			r = dedupe.Record{}
		}
	}
	m.record = r
	return m, out
}

// with is m, in which who knows c.
func (m model) with(who string, c claimant) model {
	all := map[string]claimant{who: c}
	for w, old := range m.claimants {
		if w != who {
			all[w] = old
		}
	}
	m.claimants = all
	return m
}
