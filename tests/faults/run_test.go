package faults

import (
	"testing"
)

func TestShortRunOnRedis(t *testing.T) {
	t.Parallel()
	run(t, onRedis, scale{events: 200, faults: 26, seed: theSeed()})
}

func TestShortRunOnFiles(t *testing.T) {
	t.Parallel()
	run(t, onFiles, scale{events: 200, faults: 20, seed: theSeed()})
}

func TestLongRunOnRedis(t *testing.T) {
	if *eventsFlag == 0 {
		t.Skip("only with -events")
	}
	run(t, onRedis, scale{events: *eventsFlag, faults: *faultsFlag, seed: theSeed()})
}

func TestLongRunOnFiles(t *testing.T) {
	if *eventsFlag == 0 {
		t.Skip("only with -events")
	}
	run(t, onFiles, scale{events: *eventsFlag, faults: *faultsFlag, seed: theSeed()})
}

// run lives through a world and judges it.
func run(t *testing.T, build func(*world), s scale) {
	w := newWorld(t, s)
	build(w)
	w.live()
	j := w.judge()
	t.Logf("seed %d: %s", s.seed, j.summary())
	for n, v := range j.violations {
		if n == 10 {
			t.Errorf("seed %d: and %d more violations", s.seed, len(j.violations)-n)
			break
		}
		t.Errorf("seed %d: %s\n%s", s.seed, v.text, j.history(v.event))
	}
}
