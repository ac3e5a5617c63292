package caddymodule

import "sync/atomic"

// goroutines run upstream calls aside. One that has ended a call stays for the next:
// a new one would have to grow its stack for every call, which copies it again
// and again.
type goroutines struct {
	work    chan func()
	resting atomic.Int64
}

// maxResting is how many goroutines stay while there is nothing to do.
const maxResting = 128

var calls = &goroutines{work: make(chan func())}

// run runs f in a goroutine of its own.
func (g *goroutines) run(f func()) {
	select {
	case g.work <- f:
	default:
		go g.serve(f)
	}
}

func (g *goroutines) serve(f func()) {
	for {
		f()
		if g.resting.Add(1) > maxResting {
			g.resting.Add(-1)
			return
		}
		f = <-g.work
		g.resting.Add(-1)
	}
}
