package caddymodule

import (
	"errors"
	"sync/atomic"
)

// buffers counts the bytes of all bodies that this process holds, over all routes
// and configurations, and keeps them below a limit: what strangers send must not
// exhaust the memory.
var buffers = newAllowance(defaultMaxBuffered)

// defaultMaxBuffered is the limit unless the app sets another.
const defaultMaxBuffered = 256 << 20

var errNoRoom = errors.New("the bodies held in memory have reached max_buffered")

// allowance is an amount that is taken and given back.
type allowance struct{ limit, used atomic.Int64 }

func newAllowance(limit int64) *allowance {
	a := new(allowance)
	a.allow(limit)
	return a
}

// allow sets the limit. What is above a lower one already may stay.
func (a *allowance) allow(limit int64) { a.limit.Store(limit) }

// take takes n, or nothing.
func (a *allowance) take(n int64) error {
	if a.used.Add(n) <= a.limit.Load() {
		return nil
	}
	a.used.Add(-n)
	return errNoRoom
}

func (a *allowance) give(n int64) { a.used.Add(-n) }

// room is what one delivery has taken.
type room struct {
	from *allowance
	held atomic.Int64
}

func (h *room) take(n int64) error {
	err := h.from.take(n)
	if err == nil {
		h.held.Add(n)
	}
	return err
}

// giveBack gives everything back; again, nothing.
func (h *room) giveBack() { h.from.give(h.held.Swap(0)) }
