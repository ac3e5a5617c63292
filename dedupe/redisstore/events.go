package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// errVanished says that a key was gone right after it was written, twice.
var errVanished = errors.New("redis: a key is gone right after it was set")

// Claim implements [dedupe.Store]. It takes one round trip, and a second one to
// retry a failed event or to take over a lapsed one.
func (s *Store) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	return do(ctx, s, "claim", func(ctx context.Context, c *conn) (dedupe.Record, error) {
		r, err := c.claimNew(ctx, key, h)
		if err != nil {
			return r, err
		}
		again := false
		switch r.State {
		case dedupe.InFlight, dedupe.InDoubt:
			if r.OwnedBy(h.Token) {
				again = r.LeaseLeft < h.Lease/2
			} else {
				again = takeover && r.LeaseLeft == 0
			}
		case dedupe.Failed:
			again = true
		}
		if again {
			return c.runScript(ctx, claimScript, key, h, flag(takeover))
		}
		return r, nil
	})
}

// claimNew claims an event that was never seen, and reads what is there. The
// answer to SET is not looked at, only its error: go-redis may have sent it
// twice. The token in the value tells whose the event is.
func (c *conn) claimNew(ctx context.Context, key string, h dedupe.Hold) (dedupe.Record, error) {
	q := c.newRequest(ctx, c.eventKey(key))
	q.value, q.px = encode(letterInFlight, h.Token, 1, false, h), milliseconds(h.TTL)
	for range 2 {
		if err := q.send(c, q.all[:3]); err != nil {
			return dedupe.Record{}, err
		}
		r, err := q.record()
		if q.setNew.Err() != nil {
			err = q.setNew.Err()
		}
		if err != nil || r.State != dedupe.Absent {
			q.free()
			return r, err
		}
		// An old record kept SET from writing, and expired before GET.
	}
	return dedupe.Record{}, errVanished
}

// record reads the answers to get and left.
func (q *request) record() (dedupe.Record, error) {
	value, err := q.get.Result()
	if errors.Is(err, redis.Nil) {
		return dedupe.Record{}, nil
	}
	if err == nil {
		err = q.left.Err()
	}
	if err != nil {
		return dedupe.Record{}, err
	}
	if q.left.Val() == -2 { // it expired between the two
		return dedupe.Record{}, nil
	}
	return decode(value, q.left.Val())
}

// Renew implements [dedupe.Store].
func (s *Store) Renew(ctx context.Context, key string, h dedupe.Hold) (bool, error) {
	r, err := s.change(ctx, "renew", renewScript, key, h)
	return err == nil && r.OwnedBy(h.Token), err
}

// Release implements [dedupe.Store].
func (s *Store) Release(ctx context.Context, key string, h dedupe.Hold) error {
	_, err := s.change(ctx, "release", releaseScript, key, h)
	return err
}

// Doubt implements [dedupe.Store].
func (s *Store) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	_, err := s.change(ctx, "doubt", doubtScript, key, h)
	return err
}

// change runs a script that acts only while h's token owns the event.
func (s *Store) change(ctx context.Context, operation string, script *redis.Script, key string, h dedupe.Hold) (dedupe.Record, error) {
	return do(ctx, s, operation, func(ctx context.Context, c *conn) (dedupe.Record, error) {
		return c.runScript(ctx, script, key, h, rest(h)...)
	})
}

// Complete implements [dedupe.Store].
func (s *Store) Complete(ctx context.Context, key string, d dedupe.Done) error {
	_, err := do(ctx, s, "complete", func(ctx context.Context, c *conn) (struct{}, error) {
		q := c.newRequest(ctx, c.eventKey(key))
		q.value, q.px = encodeMark(d.Mark), milliseconds(d.TTL)
		if err := q.send(c, q.all[3:]); err != nil {
			return struct{}{}, err
		}
		defer q.free()
		if q.set.Err() == nil && q.set.Val() != "OK" {
			return struct{}{}, errReply
		}
		return struct{}{}, q.set.Err()
	})
	return err
}

// Lookup implements [dedupe.Store].
func (s *Store) Lookup(ctx context.Context, key string) (dedupe.Record, error) {
	return do(ctx, s, "lookup", func(ctx context.Context, c *conn) (dedupe.Record, error) {
		q := c.newRequest(ctx, c.eventKey(key))
		if err := q.send(c, q.all[1:3]); err != nil {
			return dedupe.Record{}, err
		}
		defer q.free()
		return q.record()
	})
}
