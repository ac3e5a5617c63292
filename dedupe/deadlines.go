package dedupe

import (
	"context"
	"sync"
	"time"
)

// Deadlines hands out the contexts of store operations. Those that begin at about
// the same time share one, so that an operation costs neither a context nor a
// timer of its own. It is usable as [NewDeadlines] returns it.
type Deadlines struct {
	timeout time.Duration

	mu     sync.Mutex
	shared context.Context
	cancel context.CancelFunc
	until  time.Time // shared is handed out before it
}

// deadlineShare is the part of the time-out within which operations share a
// context.
const deadlineShare = 16

// NewDeadlines returns the deadlines of operations that may take timeout each, or
// up to 1/16 longer.
func NewDeadlines(timeout time.Duration) *Deadlines { return &Deadlines{timeout: timeout} }

// Next is the context of an operation that begins now.
func (d *Deadlines) Next() context.Context {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !now.Before(d.until) {
		share := d.timeout / deadlineShare
		d.until = now.Add(share)
		// Whoever has the one before still needs it: it ends by itself.
		d.shared, d.cancel = context.WithDeadline(context.Background(), d.until.Add(d.timeout))
	}
	return d.shared
}

// Close gives back what the last context holds, when no operation needs it any
// more.
func (d *Deadlines) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
