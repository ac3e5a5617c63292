package faults

import (
	"testing"
)

// TestShortRun runs before the other tests of this package, not beside them: a
// busy machine leaves less to go wrong in the middle of a delivery.
func TestShortRun(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		run(t, onRedis, scale{events: 200, faults: 26, seed: theSeed()})
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		run(t, onFiles, scale{events: 200, faults: 20, seed: theSeed()})
	})
}

func TestLongRun(t *testing.T) {
	if *eventsFlag == 0 {
		t.Skip("only with -events")
	}
	s := scale{events: *eventsFlag, faults: *faultsFlag, seed: theSeed()}
	for name, build := range map[string]func(*world){"redis": onRedis, "files": onFiles} {
		t.Run(name, func(t *testing.T) { run(t, build, s).assertAllDealt(t) })
	}
}

// run lives through a world and judges it.
func run(t *testing.T, build func(*world), s scale) *world {
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
	return w
}
