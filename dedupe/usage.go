package dedupe

import (
	"errors"
	"sync"
)

var errClosed = errors.New("the gate is closed")

// usage counts the operations that use the store now, so that it is closed
// after the last one: a process may have to exit while claims are not settled.
type usage struct {
	mu     sync.Mutex
	count  int
	closed bool
	idle   sync.Cond // count is 0
}

// begin reports whether the store may still be used; end must follow.
func (u *usage) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.count++
	return true
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count--
	if u.count == 0 {
		u.idle.Broadcast()
	}
}

// close lets no operation begin and waits for those that have.
func (u *usage) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for u.count > 0 {
		u.idle.Wait()
	}
}
