package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatches is how many batches are under way at once: a second one keeps
	// the server busy while the answers to the first are handed out.
	maxBatches = 2
	// maxBatch is how many callers share one batch.
	maxBatch = 128
)

// combiner lets callers that come at the same time share a round trip. What a
// command costs is the system calls around it, not the command.
//
// While fewer than maxBatches are under way, a caller sends its own commands at
// once, in its own goroutine: alone, it is as fast as without a combiner. Those
// who come meanwhile queue. Whoever finishes and finds a queue starts a
// goroutine that sends it, batch after batch, until nobody waits.
type combiner struct {
	// exec sends commands and returns when each has its answer or its error.
	exec func(ctx context.Context, cmds []redis.Cmder)

	mu       sync.Mutex
	underWay int
	queue    []*waiter
}

// waiter is a caller in the queue. It gives up when ctx ends.
type waiter struct {
	ctx  context.Context
	cmds []redis.Cmder
	done chan struct{}
}

// do sends cmds, which stay in order. It returns nil when each of them has its
// answer or its error; after an error they must not be looked at.
func (c *combiner) do(ctx context.Context, cmds ...redis.Cmder) error {
	c.mu.Lock()
	if c.underWay < maxBatches {
		c.underWay++
		c.mu.Unlock()
		defer c.handOver()
		c.exec(ctx, cmds)
		return nil
	}
	w := &waiter{ctx: ctx, cmds: cmds, done: make(chan struct{})}
	c.queue = append(c.queue, w)
	c.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOver ends a caller's own batch. A queue that has grown meanwhile gets a
// goroutine, so that the caller can leave.
func (c *combiner) handOver() {
	if batch := c.next(); batch != nil {
		go c.drain(batch)
	}
}

func (c *combiner) drain(batch []*waiter) {
	for ; batch != nil; batch = c.next() {
		c.send(batch)
	}
}

// next takes the next batch out of the queue, or ends this batch's turn if
// there is none. Those who gave up are left out: they were told that it failed,
// so nothing of theirs should happen any more.
func (c *combiner) next() []*waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	var batch []*waiter
	taken := 0
	for _, w := range c.queue {
		if len(batch) == maxBatch {
			break
		}
		taken++
		if w.ctx.Err() == nil {
			batch = append(batch, w)
		}
	}
	clear(c.queue[:taken])
	c.queue = c.queue[taken:]
	if batch == nil {
		c.queue = nil
		c.underWay--
	}
	return batch
}

// send sends one batch, for as long as the most patient of it waits.
func (c *combiner) send(batch []*waiter) {
	var deadline time.Time
	cmds := make([]redis.Cmder, 0, 3*len(batch))
	for _, w := range batch {
		cmds = append(cmds, w.cmds...)
		if d, ok := w.ctx.Deadline(); ok && d.After(deadline) {
			deadline = d
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	c.exec(ctx, cmds)
	for _, w := range batch {
		close(w.done)
	}
}
