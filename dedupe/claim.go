package dedupe

import (
	"sync"
	"time"
)

// Claim is the right to deliver an event, and the duty to say how it ended. Its
// lease is renewed until it is settled.
type Claim struct {
	gate   *Gate
	key    string
	mark   uint16
	hold   Hold
	flight *flight

	mu      sync.Mutex
	settled bool

	renewal renewal // guarded by the gate's renewals
}

func (g *Gate) newClaim(e Event, h Hold, f *flight) *Claim {
	c := &Claim{gate: g, key: e.Key, mark: e.Mark, hold: h, flight: f}
	g.renewals.add(c, h.Lease/3)
	return c
}

// Result says which claim it is: first, retry or possible-repeat.
func (c *Claim) Result() Result {
	return resultOf(Record{Attempt: c.hold.Attempt, Doubted: c.hold.Doubted})
}

// Attempt counts the tries of the event, this one included, from 1.
func (c *Claim) Attempt() int { return c.hold.Attempt }

// renew renews the lease once and sees to the next time. A claim
// that somebody else has taken over is not renewed any more; its upstream call
// goes on all the same, for what it does may be done already.
func (c *Claim) renew() {
	c.mu.Lock()
	settled := c.settled
	c.mu.Unlock()
	if settled {
		return
	}
	ctx, err := c.gate.begin()
	if err != nil {
		return
	}
	defer c.gate.usage.end()
	owned, err := c.gate.store.Renew(ctx, c.key, c.hold)

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.settled:
	case err != nil:
		c.gate.observer.RenewFailed(c.key, err)
		c.gate.renewals.add(c, c.hold.Lease/6)
	case !owned:
		c.gate.observer.ClaimLost(c.key)
	default:
		c.gate.renewals.add(c, c.hold.Lease/3)
	}
}

// Settle writes how the delivery ended. What the store cannot take now is kept
// and written later; the error says so and is for the log. An event that was
// accepted is then a duplicate to this process all the same.
//
// A claim may be settled a second time when the answer to a delivery in doubt
// came after all: an accepted one makes the event done, a refused one sets it
// free.
func (c *Claim) Settle(o Outcome) error {
	c.mu.Lock()
	late := c.settled
	c.settled = true
	c.mu.Unlock()
	c.gate.renewals.remove(c)

	s := settlement{key: c.key, hold: c.hold}
	switch o {
	case OutcomeAccepted:
		s.kind, s.done, s.at = complete, Done{Mark: c.mark, TTL: c.hold.TTL}, c.gate.clock.Now()
	case OutcomeRefused, OutcomeNotSent:
		s.kind = release
	default:
		s.kind = doubt
	}
	if late && s.kind == doubt {
		return nil
	}
	err := c.gate.write(s)
	if s.kind == complete {
		c.land(s, late, err)
		return err
	}
	if err != nil {
		c.gate.backlog.add(s, err)
	}
	if !late {
		again := time.Second
		if s.kind == doubt {
			again = c.hold.Lease
		}
		c.gate.flights.end(c.flight, Verdict{Result: ResultInFlight, RetryAfter: again}, nil)
	}
	return err
}

// land ends the flight of an accepted event; if the store does not know of it
// yet, copies are told here.
func (c *Claim) land(s settlement, late bool, err error) {
	g := c.gate
	v := Verdict{Result: ResultDuplicate, DoneAt: s.at, mark: c.mark, marked: true}
	switch {
	case err == nil && !late:
		g.flights.end(c.flight, v, nil)
	case err != nil && !late:
		g.flights.land(c.flight, v)
		s.flight = c.flight
	case err != nil:
		s.flight = &flight{key: c.key}
		g.flights.land(s.flight, v)
		g.flights.put(s.flight)
	}
	if err != nil {
		g.backlog.add(s, err)
	}
}

// write writes one settlement to the store.
func (g *Gate) write(s settlement) error {
	ctx, err := g.begin()
	if err != nil {
		return err
	}
	defer g.usage.end()
	switch s.kind {
	case complete:
		return g.store.Complete(ctx, s.key, s.done)
	case release:
		return g.store.Release(ctx, s.key, s.hold)
	default:
		return g.store.Doubt(ctx, s.key, s.hold)
	}
}
