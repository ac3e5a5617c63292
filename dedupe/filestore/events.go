package filestore

import (
	"context"
	"fmt"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// verdict is what becomes of a step's result.
type verdict uint8

const (
	unchanged verdict = iota
	// remembered changes the memory only: what is lost with the process.
	remembered
	logged
)

// Claim implements [dedupe.Store].
func (s *Store) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	if err := checkName("token", h.Token); err != nil {
		return dedupe.Record{}, err
	}
	return s.change(ctx, key, func(e entry, now instant) (entry, verdict) {
		switch {
		case e.state == dedupe.InFlight && e.token == h.Token:
			return renewed(e, h, now)
		case e.state == dedupe.Absent, e.state == dedupe.Failed:
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && now.mono >= e.leaseEnd && takeover:
			e.doubted = true
		default:
			return e, unchanged
		}
		e.token = h.Token
		e.attempt++
		return held(e, h, now), logged
	})
}

// Renew implements [dedupe.Store].
func (s *Store) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	if err := checkName("token", h.Token); err != nil {
		return false, err
	}
	r, err := s.change(ctx, key, func(e entry, now instant) (entry, verdict) {
		switch {
		case e.state == dedupe.Absent:
			e = entry{token: h.Token, attempt: h.Attempt, doubted: h.Doubted}
			return held(e, h, now), logged
		case e.state == dedupe.InFlight && e.token == h.Token:
			return renewed(e, h, now)
		}
		return e, unchanged
	})
	return err == nil && r.OwnedBy(h.Token), err
}

// Complete implements [dedupe.Store].
func (s *Store) Complete(ctx context.Context, key string, d dedupe.Done) error {
	_, err := s.change(ctx, key, func(e entry, now instant) (entry, verdict) {
		if e.state == dedupe.Completed {
			return e, unchanged
		}
		return entry{state: dedupe.Completed, mark: d.Mark, expires: now.after(d.TTL)}, logged
	})
	return err
}

// Release implements [dedupe.Store].
func (s *Store) Release(ctx context.Context, key string, h dedupe.Hold) error {
	_, err := s.change(ctx, key, func(e entry, now instant) (entry, verdict) {
		switch {
		case e.state == dedupe.Absent && h.Doubted:
			e = entry{attempt: h.Attempt, doubted: true}
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && e.token == h.Token:
		default:
			return e, unchanged
		}
		e.state, e.token, e.lease, e.expires = dedupe.Failed, "", 0, now.after(h.TTL)
		return e, logged
	})
	return err
}

// Doubt implements [dedupe.Store].
func (s *Store) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	if err := checkName("token", h.Token); err != nil {
		return err
	}
	_, err := s.change(ctx, key, func(e entry, now instant) (entry, verdict) {
		switch {
		case e.state == dedupe.Absent:
			e = entry{token: h.Token, attempt: h.Attempt}
		case (e.state == dedupe.InFlight || e.state == dedupe.InDoubt) && e.token == h.Token:
		default:
			return e, unchanged
		}
		e = held(e, h, now)
		e.state, e.doubted = dedupe.InDoubt, true
		return e, logged
	})
	return err
}

// Lookup implements [dedupe.Store].
func (s *Store) Lookup(ctx context.Context, key string) (dedupe.Record, error) {
	return s.change(ctx, key, func(e entry, _ instant) (entry, verdict) { return e, unchanged })
}

// Bind implements [dedupe.Store].
func (s *Store) Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	if err := checkName("value", value); err != nil {
		return "", err
	}
	h := hashKey(s.seed, key)
	now, err := s.begin(ctx)
	if err != nil {
		return "", err
	}
	b, ok := s.index.bindings.get(h)
	if !ok || b.expires <= now.wall {
		b = binding{value: value, expires: now.after(ttl)}
		b.seq = s.logBinding(h, b)
		s.index.bindings.set(h, b)
	}
	awaited := s.batchOf(b.seq)
	s.mu.Unlock()
	return b.value, awaited.wait(ctx)
}

// change is one atomic step: step sees the event as it is now and says what
// becomes of it. It returns once the record that the answer rests on is
// written.
func (s *Store) change(ctx context.Context, key string, step func(entry, instant) (entry, verdict)) (dedupe.Record, error) {
	h := hashKey(s.seed, key)
	now, err := s.begin(ctx)
	if err != nil {
		return dedupe.Record{}, err
	}
	old := s.index.event(h, now)
	e, what := step(old, now)
	if what == logged {
		e.kept = e.expires
		e.seq = s.logEvent(h, old, e)
	}
	if what != unchanged {
		s.index.set(h, e)
	}
	awaited := s.batchOf(e.seq)
	s.mu.Unlock()
	if err := awaited.wait(ctx); err != nil {
		return dedupe.Record{}, err
	}
	return e.record(now), nil
}

// begin locks the store for a step, unless it cannot answer.
func (s *Store) begin(ctx context.Context) (instant, error) {
	if err := ctx.Err(); err != nil {
		return instant{}, err
	}
	s.mu.Lock()
	err := s.failed
	if s.closed {
		err = ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
		return instant{}, err
	}
	return s.instant(), nil
}

// held is e in flight under h, its lease and time to live started afresh.
func held(e entry, h dedupe.Hold, now instant) entry {
	e.state = dedupe.InFlight
	e.lease = h.Lease
	e.leaseEnd = now.mono + h.Lease
	e.expires = now.after(h.TTL)
	return e
}

// renewed is held for the owner itself. The log must learn of it only when it
// would otherwise forget the event noticeably early, or late.
func renewed(e entry, h dedupe.Hold, now instant) (entry, verdict) {
	sameLease := e.lease == h.Lease
	e = held(e, h, now)
	behind, slack := e.expires-e.kept, milliseconds(h.TTL)/16
	if sameLease && -slack <= behind && behind <= slack {
		return e, remembered
	}
	return e, logged
}

func checkName(what, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("filestore: a %s of %d bytes, longer than %d", what, len(name), maxName)
	}
	return nil
}
