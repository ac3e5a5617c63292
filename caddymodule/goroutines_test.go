package caddymodule

import (
	"runtime"
	"testing"
	"time"
)

// TestGoroutinesAreUsedAgainAndBounded: none waits for another one's call to
// end, and no more than maxResting stay.
func TestGoroutinesAreUsedAgainAndBounded(t *testing.T) {
	g := &goroutines{work: make(chan func())}
	for range 3 {
		const many = 2 * maxResting
		started, goOn, ended := make(chan bool), make(chan bool), make(chan bool)
		for range many {
			g.run(func() {
				started <- true
				<-goOn
				ended <- true
			})
		}
		for range many {
			receive(t, started, "a call")
		}
		close(goOn)
		for range many {
			receive(t, ended, "the end of a call")
		}
		for end := time.Now().Add(10 * time.Second); g.resting.Load() != maxResting; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines rest, want %d", g.resting.Load(), maxResting)
			}
		}
	}
	for range maxResting {
		g.work <- runtime.Goexit
	}
}
