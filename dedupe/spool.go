package dedupe

import (
	"errors"
	"time"
)

// Spool keeps completions that wait for the store where they outlive the
// process. Its methods are called one at a time.
type Spool interface {
	// Keep adds a completion.
	Keep(Completion) error
	// Clear forgets all that was kept: the store has it.
	Clear() error
	// Load returns what was kept and not cleared, by this process or one before.
	Load() ([]Completion, error)
	// Close gives the spool's resources back. What is kept stays.
	Close() error
}

// Completion is a finished event that the store does not know of yet.
type Completion struct {
	Key  string
	Done Done
	// At is when the upstream accepted the event.
	At time.Time
}

var errRestored = errors.New("the process before this one could not write it")

// restore takes up the completions that an earlier process left: copies are
// duplicates here at once, and the store is told.
func (g *Gate) restore() {
	if g.spool == nil {
		return
	}
	left, err := g.spool.Load()
	if err != nil {
		g.observer.SpoolFailed(err)
	}
	for _, c := range left {
		f, first := g.flights.join(c.Key)
		if !first {
			continue
		}
		g.flights.land(f, Verdict{Result: ResultDuplicate, DoneAt: c.At, mark: c.Done.Mark, marked: true})
		g.backlog.add(settlement{kind: complete, key: c.Key, done: c.Done, at: c.At, flight: f}, errRestored)
	}
}
