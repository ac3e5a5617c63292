package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// conn is a client with the options it was made from. It counts its users, so
// that the last one closes it after the store has gone over to another.
type conn struct {
	options resolved
	born    time.Time
	times   *dedupe.Deadlines
	// batches is the combiner for all keys, but in a cluster.
	batches *combiner
	// nodes are a cluster's combiners, by the address of the primary: a node that
	// hangs shall not hold up the keys of the others.
	nodes sync.Map

	// configRefused says that the server does not show its configuration.
	configRefused atomic.Bool

	// users counts the operations under way, and one for the store.
	users atomic.Int64
	once  sync.Once
	// client is nil before the first use.
	client redis.UniversalClient
}

func newConn(options resolved) *conn {
	c := &conn{options: options, born: time.Now(), times: dedupe.NewDeadlines(options.timeout)}
	c.users.Store(1)
	c.batches = newCombiner(c.exec)
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
	c.batches.close()
	c.nodes.Range(func(_, node any) bool { node.(*combiner).close(); return true })
	c.times.Close()
	if c.client != nil {
		_ = c.client.Close() // there is nobody left to whom it matters
	}
}

// send sends w's commands, all of them on key, with those of other callers. See
// [combiner.do].
func (c *conn) send(w *waiter, key string) error {
	batches, err := c.combinerOf(w.ctx, key)
	if err != nil {
		return err
	}
	return batches.do(w)
}

// combinerOf returns the combiner that serves key. It only groups: the client
// itself finds the node of each command, should the key have moved.
func (c *conn) combinerOf(ctx context.Context, key string) (*combiner, error) {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return c.batches, nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	addr := node.Options().Addr
	if found, ok := c.nodes.Load(addr); ok {
		return found.(*combiner), nil
	}
	made, _ := c.nodes.LoadOrStore(addr, newCombiner(c.exec))
	return made.(*combiner), nil
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
