package caddymodule

import (
	"testing"
	"time"

	"go.uber.org/zap"
)

// settingsOf starts an app that only limits the memory for bodies.
func settingsOf(t *testing.T, s *succession, limit int64) *App {
	t.Helper()
	a := &App{MaxBuffered: limit, logger: zap.NewNop()}
	if err := s.succeed(a); err != nil {
		t.Fatal(err)
	}
	return a
}

func wantLimit(t *testing.T, want int64) {
	t.Helper()
	if got := buffers.limit.Load(); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}

// TestSettingsFollowTheConfigurationInForce, over reloads that succeed and fail.
func TestSettingsFollowTheConfigurationInForce(t *testing.T) {
	defer buffers.allow(buffers.limit.Load())
	defer exit.allow(exit.grace)
	s := new(succession)
	one := settingsOf(t, s, 1000)
	failed := settingsOf(t, s, 2000)
	wantLimit(t, 2000)
	s.retire(failed)
	wantLimit(t, 1000)
	two := settingsOf(t, s, 3000)
	s.retire(one)
	wantLimit(t, 3000)
	s.retire(settingsOf(t, s, 4000))
	wantLimit(t, 3000)
	s.retire(one) // again: it is not in force
	wantLimit(t, 3000)
	s.retire(two)
	if s.now != nil || s.before != nil {
		t.Error("apps that are gone are kept")
	}
}

// TestGracePeriodIsThatOfTheConfigurationInForce: a reload that fails must not
// shorten the exit of the one that goes on.
func TestGracePeriodIsThatOfTheConfigurationInForce(t *testing.T) {
	defer exit.allow(exit.grace)
	defer buffers.allow(buffers.limit.Load())
	s := new(succession)
	settingsOf(t, s, 1000)
	failed := settingsOf(t, s, 1000)
	exit.allow(time.Hour) // as its configuration says
	s.retire(failed)
	if exit.grace != 0 {
		t.Errorf("the grace period is %v", exit.grace)
	}
}
