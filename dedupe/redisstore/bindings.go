package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bind implements [dedupe.Store], in one round trip.
func (s *Store) Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	return do(ctx, s, "bind", func(ctx context.Context, c *conn) (string, error) {
		q := c.newRequest(ctx, c.bindingKey(key))
		q.value, q.px = value, milliseconds(ttl)
		for range 2 {
			if err := q.send(c, q.all[:2]); err != nil {
				return "", err
			}
			if err := q.setNew.Err(); err != nil {
				return "", err
			}
			if !errors.Is(q.get.Err(), redis.Nil) {
				defer q.free()
				return q.get.Result()
			}
			// An old binding kept SET from writing, and expired before GET.
		}
		return "", errVanished
	})
}
