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
		k := c.bindingKey(key)
		for range 2 {
			set := redis.NewBoolCmd(ctx, "set", k, value, "px", millis(ttl), "nx")
			get := redis.NewStringCmd(ctx, "get", k)
			if err := c.send(ctx, k, set, get); err != nil {
				return "", err
			}
			if set.Err() != nil {
				return "", set.Err()
			}
			if !errors.Is(get.Err(), redis.Nil) {
				return get.Result()
			}
			// An old binding kept SET from writing, and expired before GET.
		}
		return "", errVanished
	})
}
