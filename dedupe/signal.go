package dedupe

import "sync"

// signal is given once. Only those who have to wait for it make its channel. The
// zero signal is usable.
type signal struct {
	mu    sync.Mutex
	given bool
	c     chan struct{} // closed when it is given; nil while nobody waits
}

// give gives the signal, for the first time.
func (s *signal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = true
	if s.c != nil {
		close(s.c)
	}
}

func (s *signal) wasGiven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// wait returns a channel that is closed when the signal is given.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
		if s.given {
			close(s.c)
		}
	}
	return s.c
}
