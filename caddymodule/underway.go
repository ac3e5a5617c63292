package caddymodule

import (
	"context"
	"sync"
)

// underWay counts the deliveries that are in the upstream, in all configurations
// of this process. Caddy does not wait for those whose sender has gone; the exit
// does (see exit.go).
var underWay = newCounter()

// counter counts what is under way and can be waited for.
type counter struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
}

func newCounter() *counter {
	c := &counter{zero: make(chan struct{})}
	close(c.zero)
	return c
}

func (c *counter) add() {
	metrics.upstream.Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == 1 {
		c.zero = make(chan struct{})
	}
}

func (c *counter) done() {
	metrics.upstream.Dec()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 {
		close(c.zero)
	}
}

// wait waits until nothing is under way or ctx is over, and returns what is.
func (c *counter) wait(ctx context.Context) int {
	c.mu.Lock()
	zero := c.zero
	c.mu.Unlock()
	select {
	case <-zero:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
