package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"time"
)

// doneEvents is how many events a duplicate is one of. It is far more than there
// are connections, so that no two copies of one event are under way at once.
const doneEvents = 2000

// row is a variant and what was measured of it.
type row struct {
	variant
	// Runs are the rounds' outcomes.
	Runs []*outcome
	// Note says why there are none.
	Note string

	done string // the salt of events that are done
}

// measure runs all variants in rounds. In each round every variant runs once, in
// random order, so that what disturbs the machine disturbs all alike.
func (r *rig) measure(ctx context.Context, chosen []variant) ([]*row, error) {
	var rows, running []*row
	for _, v := range chosen {
		w := &row{variant: v}
		rows = append(rows, w)
		err := r.prepare(ctx, w)
		switch {
		case errors.Is(err, errNoNginx):
			w.Note = err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		default:
			running = append(running, w)
		}
	}
	for round := range r.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, r.rounds)
		mathrand.Shuffle(len(running), func(i, k int) { running[i], running[k] = running[k], running[i] })
		for _, w := range running {
			out, err := r.run(ctx, w)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.Name, err)
			}
			w.Runs = append(w.Runs, out)
		}
	}
	return rows, nil
}

// prepare starts the server of a row and has it finish the events whose copies
// will be sent.
func (r *rig) prepare(ctx context.Context, w *row) error {
	s, err := r.serverFor(w.server)
	if err != nil || !w.duplicate {
		return err
	}
	w.done = newSalt()
	j := r.job(w.variant, s)
	j.New, j.Count, j.Rate = w.done, doneEvents, 0
	if j.Word = "first"; !w.isGateway() {
		j.Word = ""
	}
	out, err := r.load(ctx, j)
	if err == nil && out.Wrong > 0 {
		err = errors.New(out.FirstWrong)
	}
	return err
}

// run measures a row once.
func (r *rig) run(ctx context.Context, w *row) (*outcome, error) {
	s, err := r.serverFor(w.server)
	if err != nil {
		return nil, err
	}
	j := r.job(w.variant, s)
	if w.duplicate {
		j.Done, j.DoneCount = w.done, doneEvents
	} else {
		j.New = newSalt()
	}
	return r.load(ctx, j)
}

// job is what the load generator is told for a variant, but for the events.
func (r *rig) job(v variant, s *server) job {
	j := job{
		Address: s.sites[v.sender], Sender: v.sender, BodySize: r.body, Connections: r.connections,
		Warmup: r.warmup, Duration: r.duration, Word: v.word,
		Watch: map[string]int{"server": s.pid, "redis": r.redis.pid},
	}
	if v.Open {
		j.Rate, j.Duration = r.rate, r.openDuration
	}
	return j
}

// newSalt makes event ids that were never used before. It has saltSize
// characters.
func newSalt() string {
	return "evt_" + (rand.Text() + rand.Text())[:saltSize-5] + "_"
}

// settings are what the flags say.
type settings struct {
	rounds                 int
	duration, openDuration time.Duration
	warmup                 time.Duration
	connections            int
	rate                   float64
	body                   int
	dir, program, older    string
}
