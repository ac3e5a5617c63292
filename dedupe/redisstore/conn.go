package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// conn is a client with the options it was made from. It counts its users, so
// that the last one closes it after the store has gone over to another.
type conn struct {
	options resolved
	born    time.Time
	batches combiner

	// users counts the operations under way, and one for the store.
	users atomic.Int64
	once  sync.Once
	// client is nil before the first use.
	client redis.UniversalClient
}

func newConn(options resolved) *conn {
	c := &conn{options: options, born: time.Now()}
	c.users.Store(1)
	c.batches.exec = c.exec
	return c
}

// acquire adds a user. It is false if the conn is closed.
func (c *conn) acquire() bool {
	for n := c.users.Load(); n > 0; n = c.users.Load() {
		if c.users.CompareAndSwap(n, n+1) {
			c.once.Do(func() { c.client = newClient(c.options) })
			return true
		}
	}
	return false
}

// release takes a user away, and closes the client after the last.
func (c *conn) release() {
	if c.users.Add(-1) > 0 {
		return
	}
	c.once.Do(func() {})
	if c.client != nil {
		_ = c.client.Close() // there is nobody left to whom it matters
	}
}

// exec is the combiner's.
func (c *conn) exec(ctx context.Context, cmds []redis.Cmder) {
	pipe := c.client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	if _, err := pipe.Exec(ctx); err != nil {
		refuse(cmds, err)
	}
}

// refuse marks commands that never were sent. go-redis marks them itself,
// except when the server refused the connection in words of its own
// (WRONGPASS, LOADING): then each would pass for answered, with nothing.
func refuse(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			return
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// eventKey and bindingKey keep the two key spaces apart.
func (c *conn) eventKey(key string) string   { return c.options.prefix + ":" + key }
func (c *conn) bindingKey(key string) string { return c.options.prefix + "!" + key }
