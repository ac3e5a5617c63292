package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// The times of a route as it is by default, behind the sender whose ladder
// this is: an attempt fails after attemptTimeout, and comes again after each
// of these gaps.
const (
	leaseTime       = 30 * time.Second
	storeTimeout    = time.Second
	upstreamTimeout = 2 * time.Minute
	attemptTimeout  = 10 * time.Second
)

var ladder = []time.Duration{
	1 * time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute,
	1 * time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
}

// calm is how long after the last fault everything has surely ended: an
// upstream that works on after its time-out, a request that comes late, a lease.
const calm = 15 * time.Minute

// plan is what a history is made of.
type plan struct {
	policy   dedupe.Policy
	gateways int
	events   int
	quiet    time.Duration // no fault and no bad upstream from here on
	network  network
	upstream [behaviours]int // weights
}

// network is how often an operation of the store goes wrong.
type network struct{ lostRequest, lostReply, slow, late float64 }

func newPlan(rng *rand.Rand) plan {
	p := plan{
		policy: dedupe.Policy{
			TTL: 7 * 24 * time.Hour, Lease: leaseTime, Wait: 4500 * time.Millisecond,
		},
		gateways: 2 + rng.IntN(3),
		events:   1 + rng.IntN(2),
		quiet:    time.Duration(rng.Int64N(int64(35 * time.Minute))),
	}
	switch rng.IntN(10) {
	case 0, 1:
		p.policy.Hold = true
	case 2:
		p.policy.ForwardOnError = true
	}
	rates := []float64{0, 0, 0.02, 0.15}
	rate := func() float64 { return rates[rng.IntN(len(rates))] }
	p.network = network{lostRequest: rate(), lostReply: rate(), slow: rate(), late: rate()}
	for i := range p.upstream {
		p.upstream[i] = rng.IntN(4)
	}
	p.upstream[accepts]++
	return p
}

// mischief plans the deaths, the pauses and the outages of the history, all
// before the quiet. A few come within seconds, where the copies are.
func (w *world) mischief() {
	when := func() time.Duration {
		if w.chance(0.5) {
			return min(w.plan.quiet, w.between(0, 20*time.Second))
		}
		return w.between(0, w.plan.quiet)
	}
	place := func() int { return w.rng.IntN(len(w.slots)) }
	for range max(0, w.rng.IntN(5)-2) {
		i, back := place(), w.between(100*time.Millisecond, time.Minute)
		t := when()
		w.at(t, func() { w.crash(i) })
		w.at(t+back, func() { w.restart(i) })
	}
	for range max(0, w.rng.IntN(5)-2) {
		i, t := place(), when()
		length := w.between(time.Second, leaseTime/2)
		if w.chance(0.7) {
			length = w.between(leaseTime, 4*leaseTime)
		}
		w.at(t, func() { w.slots[i].freeze(min(length, max(0, w.plan.quiet-t))) })
	}
	if w.mutant.forgets {
		for range 1 + w.rng.IntN(3) {
			w.at(when(), w.store.(*compared).forget)
		}
	}
	for range max(0, w.rng.IntN(5)-2) {
		t := when()
		s := span{t, min(w.plan.quiet, t+w.between(time.Second, 3*leaseTime))}
		if w.chance(0.5) {
			w.outages = append(w.outages, s)
			continue
		}
		i := place()
		w.at(t, func() { w.slots[i].cutOff = append(w.slots[i].cutOff, s) })
	}
}
