package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatches is how many batches are under way at once.
	maxBatches = 2
	// worthwhile is how many callers are worth a further batch while the one under
	// way is young. Most of what a batch costs is the same for one and for many.
	worthwhile = 16
	// young is how long a batch may take before those who come begin a further one,
	// however few they are: the network is slow, or the connection hangs.
	young = time.Millisecond
	// maxBatch is how many callers share one batch.
	maxBatch = 128
)

// combiner lets callers that come at the same time share a round trip. What a
// command costs is the system calls around it, not the command.
//
// While nothing is under way, a caller sends its own commands at once, in its own
// goroutine: alone, it is as fast as without a combiner. Those who come meanwhile
// queue. Whoever finishes and finds a queue, or makes one that a further batch is
// due for, has a goroutine send it, batch after batch, until nobody waits. That
// goroutine stays for the next queue: a new one would have to grow its stack
// every time.
type combiner struct {
	// exec sends commands and returns when each has its answer or its error.
	exec func(ctx context.Context, cmds []redis.Cmder)
	now  func() time.Time

	mu       sync.Mutex
	underWay int
	began    time.Time // the last of those
	queue    []*waiter
	spare    []*waiter // memory for another queue
	resting  int       // goroutines that stay for the next queue
	closed   bool

	work chan []*waiter // for those who rest
	quit chan struct{}  // ends them
}

// waiter is a caller with its commands. It gives up when ctx ends, and is not
// to be used again then.
type waiter struct {
	ctx  context.Context
	cmds []redis.Cmder
	done chan struct{} // has room for one value
}

func newCombiner(exec func(ctx context.Context, cmds []redis.Cmder)) *combiner {
	return &combiner{exec: exec, now: time.Now, work: make(chan []*waiter), quit: make(chan struct{})}
}

// do sends w's commands, which stay in order. It returns nil when each of them
// has its answer or its error; after an error they must not be looked at.
func (c *combiner) do(w *waiter) error {
	c.mu.Lock()
	if c.underWay < 1 {
		c.underWay++
		c.began = c.now()
		c.mu.Unlock()
		defer c.handOver()
		c.exec(w.ctx, w.cmds)
		return nil
	}
	if c.queue == nil {
		c.queue, c.spare = c.spare[:0], nil
	}
	c.queue = append(c.queue, w)
	further := c.underWay < maxBatches && (len(c.queue) >= worthwhile || c.now().Sub(c.began) > young)
	if further {
		c.underWay++
	}
	c.mu.Unlock()
	if further {
		c.handOver()
	}
	select {
	case <-w.done:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// handOver passes a caller's turn on: the queue goes to another goroutine, so that
// the caller need not stay for it. Without a queue the turn ends.
func (c *combiner) handOver() {
	batch := c.next()
	if batch == nil {
		return
	}
	select {
	case c.work <- batch:
	default:
		go c.drain(batch)
	}
}

// drain sends batches while there are any, and rests until there are more or
// the combiner is closed.
func (c *combiner) drain(batch []*waiter) {
	for {
		for ; batch != nil; batch = c.next() {
			c.send(batch)
		}
		if !c.rest() {
			return
		}
		select {
		case batch = <-c.work:
		case <-c.quit:
			return
		}
		c.mu.Lock()
		c.resting--
		c.mu.Unlock()
	}
}

// rest reports whether one more goroutine may stay for the next queue.
func (c *combiner) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.resting == maxBatches {
		return false
	}
	c.resting++
	return true
}

// close ends the goroutines that rest. What is under way still ends as it would.
func (c *combiner) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.quit)
	}
}

// next takes the next batch out of the queue, or ends this batch's turn if
// there is none. Those who gave up are left out: they were told that it failed,
// so nothing of theirs should happen any more.
func (c *combiner) next() []*waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		batch := c.queue
		if len(batch) <= maxBatch {
			c.queue = nil
		} else {
			batch, c.queue = batch[:maxBatch:maxBatch], batch[maxBatch:]
		}
		waiting := batch[:0]
		for _, w := range batch {
			if w.ctx.Err() == nil {
				waiting = append(waiting, w)
			}
		}
		if clear(batch[len(waiting):]); len(waiting) > 0 {
			c.began = c.now()
			return waiting
		}
	}
	c.queue = nil
	c.underWay--
	return nil
}

// send sends one batch, for as long as the most patient of it waits.
func (c *combiner) send(batch []*waiter) {
	ctx, patience := batch[0].ctx, time.Time{}
	cmds := make([]redis.Cmder, 0, 3*len(batch))
	for _, w := range batch {
		cmds = append(cmds, w.cmds...)
		if d, ok := w.ctx.Deadline(); ok && d.After(patience) {
			ctx, patience = w.ctx, d
		}
	}
	c.exec(ctx, cmds)
	for i, w := range batch {
		batch[i] = nil
		w.done <- struct{}{}
	}
	c.mu.Lock()
	if c.spare == nil && cap(batch) <= maxBatch {
		c.spare = batch[:0]
	}
	c.mu.Unlock()
}
