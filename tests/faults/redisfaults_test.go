package faults

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// redisFaults are those of the server.
func (w *world) redisFaults(r *harness.Redis) []fault {
	say := func(args ...any) func() { return func() { r.Do(args...) } }
	real := func(name string, begin, end func()) fault {
		return w.lasting(away, everywhere, name, 200*time.Millisecond, 1300*time.Millisecond, func(*rand.Rand) { begin() }, end)
	}
	again := real("redis killed, comes back", r.Kill, r.Start)
	frozen := w.lasting(away, everywhere, "redis frozen", 300*time.Millisecond, 2500*time.Millisecond, func(*rand.Rand) { r.Freeze() }, r.Thaw)
	// Data are lost rarely: for what was done before, nothing can be promised.
	return []fault{
		again, again, frozen, frozen,
		real("redis is full (OOM)", say("CONFIG", "SET", "maxmemory", "1"), say("CONFIG", "SET", "maxmemory", "0")),
		real("redis is a replica (READONLY)", say("REPLICAOF", "127.0.0.1", "1"), say("REPLICAOF", "NO", "ONE")),
		real("redis misses replicas (NOREPLICAS)", say("CONFIG", "SET", "min-replicas-to-write", "3"), say("CONFIG", "SET", "min-replicas-to-write", "0")),
		real("redis cannot save (MISCONF)", r.FailToSave, r.SaveAgain),
		real("redis is loading (LOADING)", r.LoadSlowly, r.LoadQuickly),
		real("redis wants a password (NOAUTH)", r.WantPassword, r.WantNoPassword),
		real("redis takes no more clients", r.TakeAllPlaces, r.LeavePlaces),
		real("redis pauses writes", say("CLIENT", "PAUSE", "30000", "WRITE"), say("CLIENT", "UNPAUSE")),
		fault{"redis drops its clients, again and again", func(rng *rand.Rand) {
			over := w.spans.begin(away, everywhere, "redis drops its clients, again and again")
			defer over()
			for range 5 {
				r.DropOthers("")
				pause(rng, 0, 200*time.Millisecond)
			}
		}},
		w.storeLoss(r, r.Dir()),
	}
}

// storeLoss empties the server, now this way and now that.
func (w *world) storeLoss(r *harness.Redis, dir string) fault {
	return fault{"redis loses its data", func(rng *rand.Rand) {
		over := w.spans.begin(loss, everywhere, "redis loses its data")
		defer over()
		if rng.IntN(2) == 0 {
			r.Do("FLUSHALL")
			return
		}
		// The server is away for a time, too.
		back := w.spans.begin(away, everywhere, "redis killed, comes back empty")
		defer back()
		r.Kill()
		if err := os.RemoveAll(filepath.Join(dir, "appendonlydir")); err != nil {
			w.t.Error(err)
		}
		pause(rng, 0, 500*time.Millisecond)
		r.Start()
	}}
}

// linkFaults are those of the network between a gateway and the server.
func (w *world) linkFaults(n int, proxy *harness.RedisProxy, way *relay) []fault {
	link := func(name string, fate harness.Fate, percent int) fault {
		return w.lasting(cutOff, n, name, 300*time.Millisecond, 1500*time.Millisecond, func(rng *rand.Rand) {
			dice := rand.New(rand.NewPCG(rng.Uint64(), 1)) // asked under the proxy's lock
			proxy.Decide(func([]string) harness.Fate {
				if dice.IntN(100) < percent {
					return fate
				}
				return harness.Pass
			})
		}, func() { proxy.Decide(func([]string) harness.Fate { return harness.Pass }) })
	}
	delayed := func(name string, delay time.Duration) fault {
		return w.lasting(cutOff, n, name, 300*time.Millisecond, 1500*time.Millisecond,
			func(*rand.Rand) { way.delay.Store(int64(delay)) }, func() { way.delay.Store(0) })
	}
	return []fault{
		w.lasting(cutOff, n, "redis' address refuses connections", 300*time.Millisecond, 1500*time.Millisecond,
			func(*rand.Rand) { way.shut() }, way.open),
		link("link cut before commands", harness.CutBefore, 40),
		link("link cut", harness.CutBefore, 100),
		link("link cut after commands", harness.CutAfter, 40),
		link("link loses all answers", harness.CutAfter, 100),
		link("link swallows answers", harness.Swallow, 30),
		link("redis says LOADING", harness.Refuse("LOADING Redis is loading the dataset in memory"), 100),
		link("redis says MISCONF", harness.Refuse("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk"), 60),
		link("redis says NOAUTH", harness.Refuse("NOAUTH Authentication required."), 100),
		link("redis says READONLY", harness.Refuse("READONLY You can't write against a read only replica."), 60),
		delayed("link is slow", 120*time.Millisecond),
		delayed("link is slower than the store's time-out", 700*time.Millisecond),
	}
}
