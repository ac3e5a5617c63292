// Package memstore keeps events in memory: for tests and trials, and as the
// readable reference of the Store contract. It forgets everything when the
// process ends.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// Store is a [dedupe.Store] in memory.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	events   map[string]event
	bindings map[string]binding
	swept    time.Time
}

// event is a record with its times as instants of the store's clock.
type event struct {
	state    dedupe.State
	token    string
	attempt  int
	doubted  bool
	leaseEnd time.Time
	expires  time.Time
	mark     uint16
}

type binding struct {
	value   string
	expires time.Time
}

// sweepEvery is how often expired records are looked for and dropped.
const sweepEvery = time.Minute

// New returns an empty store that reads the time from now; nil means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{
		now:      now,
		events:   make(map[string]event),
		bindings: make(map[string]binding),
		swept:    now(),
	}
}

// Claim implements [dedupe.Store].
func (s *Store) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	return s.change(ctx, key, func(e event, now time.Time) (event, bool) {
		lapsed := !now.Before(e.leaseEnd)
		switch {
		case e.state == dedupe.InFlight && e.token == h.Token:
			return held(e, h, now), true
		case e.state == dedupe.Absent, e.state == dedupe.Failed:
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && lapsed && takeover:
			e.doubted = true
		default:
			return e, false
		}
		e.token = h.Token
		e.attempt++
		return held(e, h, now), true
	})
}

// Renew implements [dedupe.Store].
func (s *Store) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	r, err := s.change(ctx, key, func(e event, now time.Time) (event, bool) {
		switch {
		case e.state == dedupe.Absent:
			e = event{token: h.Token, attempt: h.Attempt, doubted: h.Doubted}
		case e.state == dedupe.InFlight && e.token == h.Token:
		default:
			return e, false
		}
		return held(e, h, now), true
	})
	return err == nil && r.OwnedBy(h.Token), err
}

// Complete implements [dedupe.Store].
func (s *Store) Complete(ctx context.Context, key string, d dedupe.Done) error {
	_, err := s.change(ctx, key, func(e event, now time.Time) (event, bool) {
		if e.state == dedupe.Completed {
			return e, false
		}
		return event{state: dedupe.Completed, mark: d.Mark, expires: now.Add(d.TTL)}, true
	})
	return err
}

// Release implements [dedupe.Store].
func (s *Store) Release(ctx context.Context, key string, h dedupe.Hold) error {
	_, err := s.change(ctx, key, func(e event, now time.Time) (event, bool) {
		switch {
		case e.state == dedupe.Absent && h.Doubted:
			e = event{attempt: h.Attempt, doubted: true}
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && e.token == h.Token:
		default:
			return e, false
		}
		e.state, e.token, e.expires = dedupe.Failed, "", now.Add(h.TTL)
		return e, true
	})
	return err
}

// Doubt implements [dedupe.Store].
func (s *Store) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	_, err := s.change(ctx, key, func(e event, now time.Time) (event, bool) {
		switch {
		case e.state == dedupe.Absent:
			e = event{token: h.Token, attempt: h.Attempt}
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && e.token == h.Token:
		default:
			return e, false
		}
		e = held(e, h, now)
		e.state, e.doubted = dedupe.InDoubt, true
		return e, true
	})
	return err
}

// Lookup implements [dedupe.Store].
func (s *Store) Lookup(ctx context.Context, key string) (dedupe.Record, error) {
	return s.change(ctx, key, func(e event, _ time.Time) (event, bool) { return e, false })
}

// Bind implements [dedupe.Store].
func (s *Store) Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.sweep(now)
	b, ok := s.bindings[key]
	if !ok || !now.Before(b.expires) {
		b = binding{value, now.Add(ttl)}
		s.bindings[key] = b
	}
	return b.value, nil
}

// Close implements [dedupe.Store].
func (s *Store) Close() error { return nil }

// change is one atomic step: step sees the event as it is now and returns it
// as it shall be, with true if that is to be kept.
func (s *Store) change(ctx context.Context, key string, step func(event, time.Time) (event, bool)) (dedupe.Record, error) {
	if err := ctx.Err(); err != nil {
		return dedupe.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.sweep(now)
	e := s.events[key]
	if !now.Before(e.expires) {
		e = event{}
	}
	e, changed := step(e, now)
	if changed {
		s.events[key] = e
	}
	return e.record(now), nil
}

// held is e in flight under h, its lease and time to live started afresh.
func held(e event, h dedupe.Hold, now time.Time) event {
	e.state = dedupe.InFlight
	e.leaseEnd = now.Add(h.Lease)
	e.expires = now.Add(h.TTL)
	return e
}

func (e event) record(now time.Time) dedupe.Record {
	if e.state == dedupe.Absent {
		return dedupe.Record{}
	}
	r := dedupe.Record{
		State: e.state, Token: e.token, Attempt: e.attempt, Doubted: e.doubted,
		Left: e.expires.Sub(now), Mark: e.mark,
	}
	if e.state == dedupe.InFlight || e.state == dedupe.InDoubt {
		r.LeaseLeft = max(0, e.leaseEnd.Sub(now))
	}
	return r
}

// sweep drops what has expired, at most once in sweepEvery.
func (s *Store) sweep(now time.Time) {
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for key, e := range s.events {
		if !now.Before(e.expires) {
			delete(s.events, key)
		}
	}
	for key, b := range s.bindings {
		if !now.Before(b.expires) {
			delete(s.bindings, key)
		}
	}
}
