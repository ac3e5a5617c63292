package dedupe

import (
	"sync"
	"time"
)

// renewals are the claims whose leases have to be renewed. One timer serves them
// all, since most are settled long before their first renewal. The zero value
// needs a clock.
type renewals struct {
	clock Clock

	mu     sync.Mutex
	claims []*Claim // in any order; a claim knows its place
	rings  time.Time
	stop   func() bool // the timer; nil before the first
}

// renewalSlack is the part of a lease by which a claim may be renewed early,
// along with another one, so that the timer need not ring for each.
const renewalSlack = 32

// renewal is a claim's place among the renewals.
type renewal struct {
	due   time.Time
	place int // from 1; 0 is nowhere
}

// add has c renewed once, after d.
func (r *renewals) add(c *Claim, d time.Duration) {
	due := r.clock.Now().Add(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims = append(r.claims, c)
	c.renewal = renewal{due, len(r.claims)}
	if r.rings.IsZero() || due.Before(r.rings) {
		r.set(due, d)
	}
}

// remove has c not renewed any more, unless its renewal has begun.
func (r *renewals) remove(c *Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.renewal.place > 0 {
		r.take(c)
	}
}

// take takes c out. r.mu is held.
func (r *renewals) take(c *Claim) {
	i, last := c.renewal.place-1, len(r.claims)-1
	r.claims[i] = r.claims[last]
	r.claims[i].renewal.place = i + 1
	r.claims[last] = nil
	r.claims = r.claims[:last]
	c.renewal.place = 0
}

// set has the timer ring at due, which is in d. r.mu is held.
func (r *renewals) set(due time.Time, d time.Duration) {
	if r.stop != nil {
		r.stop()
	}
	r.rings, r.stop = due, r.clock.AfterFunc(d, r.ring)
}

// ring renews the claims that are due, and sets the timer for the others.
func (r *renewals) ring() {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rings = time.Time{}
	var next time.Time
	for i := 0; i < len(r.claims); {
		c := r.claims[i]
		if c.renewal.due.Sub(now) <= c.hold.Lease/renewalSlack {
			r.take(c)
			go c.renew() // a slow store holds up no other claim
			continue
		}
		if next.IsZero() || c.renewal.due.Before(next) {
			next = c.renewal.due
		}
		i++
	}
	if !next.IsZero() {
		r.set(next, next.Sub(now))
	}
}
