package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// request is one round trip of an event or a binding: a caller with the commands
// that it may send, and the memory for them.
type request struct {
	waiter
	key, value string
	px         int64
	once       bool // it is not used again

	setNew *redis.BoolCmd   // SET key value PX px NX
	get    *redis.StringCmd // GET key
	left   *redis.IntCmd    // PTTL key
	set    *redis.StatusCmd // SET key value PX px
	all    [4]redis.Cmder   // in this order
}

// requests are those that nobody uses. What go-redis allocates for commands would
// be most of what an operation does.
var requests = sync.Pool{New: func() any {
	r, ctx := new(request), context.Background()
	r.done = make(chan struct{}, 1)
	r.setNew = redis.NewBoolCmd(ctx, "set", &r.key, &r.value, "px", &r.px, "nx")
	r.get = redis.NewStringCmd(ctx, "get", &r.key)
	r.left = redis.NewIntCmd(ctx, "pttl", &r.key)
	r.set = redis.NewStatusCmd(ctx, "set", &r.key, &r.value, "px", &r.px)
	r.all = [4]redis.Cmder{r.setNew, r.get, r.left, r.set}
	return r
}}

// newRequest returns a request on key.
func (c *conn) newRequest(ctx context.Context, key string) *request {
	r := requests.Get().(*request)
	r.ctx, r.key, r.once = ctx, key, c.options.cluster
	return r
}

// send sends cmds, some of r.all. The error is that of the trip; r is not to be
// used again after it.
func (r *request) send(c *conn, cmds []redis.Cmder) error {
	r.cmds = cmds
	for _, cmd := range cmds {
		cmd.SetErr(nil)
	}
	return c.send(&r.waiter, r.key)
}

// free lets r be used again, when its answers have been read; but not after it
// was sent to a cluster, whose commands remember the slot of their first key.
func (r *request) free() {
	if !r.once {
		requests.Put(r)
	}
}
