package caddymodule

import "sync"

// inForce is the app whose settings for the process hold. While Caddy reloads
// there are two: the new one takes over when it starts, and if the reload fails
// after that, the old one, which Caddy keeps running, gets its settings back.
var inForce = new(succession)

type succession struct {
	mu     sync.Mutex
	now    *App
	before *App // while it has not been cleaned up
}

// succeed puts a in force.
func (s *succession) succeed(a *App) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.before = a, s.now
	return a.apply()
}

// retire is for an app that is cleaned up.
func (s *succession) retire(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a {
	case s.before:
		s.before = nil
	case s.now:
		s.now, s.before = s.before, nil
		if s.now == nil {
			return
		}
		if err := s.now.apply(); err != nil {
			s.now.logger.Error("the settings of the configuration in force could not be restored: " + err.Error())
		}
	}
}
