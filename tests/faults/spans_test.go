package faults

import (
	"slices"
	"sync"
	"time"
)

// cause is a kind of fault, as far as a promise is bounded by it.
type cause string

// The causes. An exit in good order, a reload and the upstream's own faults are
// none: nothing about a delivery may get lost by them. What an upstream did to a
// request is in the upstream's ledger.
const (
	none   cause = "none"
	killed cause = "kill"
	frozen cause = "freeze"
	cutOff cause = "link"
	away   cause = "store away"
	loss   cause = "store loss"
	// upstreamFault is what the upstream alone is to blame for.
	upstreamFault cause = "upstream"
)

// everywhere is the gateway of a fault that is not about one of them.
const everywhere = -1

// span is one fault.
type span struct {
	cause    cause
	what     string
	gateway  int
	route    string // empty: all of them
	from, to time.Time
}

// spans is the ledger of the faults.
type spans struct {
	mu  sync.Mutex
	all []*span
}

// begin opens a line in the ledger. The fault has not happened yet; end is
// called when it is over.
func (s *spans) begin(c cause, gateway int, what string) (end func()) {
	return s.beginAt("", c, gateway, what)
}

// beginAt is begin for a fault of one route.
func (s *spans) beginAt(route string, c cause, gateway int, what string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := &span{cause: c, what: what, gateway: gateway, route: route, from: time.Now()}
	s.all = append(s.all, sp)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		sp.to = time.Now()
	}
}

// aftermath is how long a fault may be felt after it is over: connections are
// found dead, time-outs run out, renewals and writes are tried again.
const aftermath = 1500 * time.Millisecond

// during is the first fault that could make a gateway lose the outcome of a
// delivery, or its lease, in this time. The loss of the store's data is not one
// of them.
func (s *spans) during(gateway int, route *route, from, to time.Time) *span {
	i := slices.IndexFunc(s.all, func(sp *span) bool {
		return sp.cause != none && sp.cause != loss && (sp.gateway == everywhere || sp.gateway == gateway) &&
			(sp.route == "" || sp.route == route.name) &&
			sp.from.Before(to) && sp.over().After(from)
	})
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// lost reports whether the store lost its data in this time.
func (s *spans) lost(from, to time.Time) bool {
	return slices.ContainsFunc(s.all, func(sp *span) bool {
		return sp.cause == loss && sp.from.Before(to) && (sp.to.IsZero() || sp.to.After(from))
	})
}

// over is when the fault is not felt any more.
func (sp *span) over() time.Time {
	if sp.to.IsZero() {
		return time.Now()
	}
	return sp.to.Add(aftermath)
}
