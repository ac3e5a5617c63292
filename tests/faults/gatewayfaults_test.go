package faults

import (
	"math/rand/v2"
	"time"
)

// gatewayFaults are those of a Caddy process.
func (w *world) gatewayFaults(n int) []fault {
	g := w.gateways[n]
	restart := func(c cause, name string, stop func()) fault {
		return w.lasting(c, n, name, 0, 400*time.Millisecond, func(*rand.Rand) { stop() }, func() { g.Start("") })
	}
	freeze := func(name string, least, most time.Duration) fault {
		return w.lasting(frozen, n, name, least, most, func(*rand.Rand) { g.Pause() }, g.Continue)
	}
	kill := restart(killed, "gateway killed", g.Kill)
	terminate := restart(none, "gateway ended", g.Terminate)
	variant := 0
	reload := fault{"gateway reloaded", func(*rand.Rand) {
		over := w.spans.begin(none, n, "gateway reloaded")
		defer over()
		variant++
		g.Reload(w.site(variant))
	}}
	// Each reload takes over from one that has hardly begun.
	storm := fault{"gateway reloaded again and again", func(*rand.Rand) {
		over := w.spans.begin(none, n, "gateway reloaded again and again")
		defer over()
		for range 4 {
			variant++
			g.Reload(w.site(variant))
		}
	}}
	return []fault{
		storm,
		kill, kill, terminate, terminate, reload,
		freeze("gateway frozen beyond the lease", lease+200*time.Millisecond, 2600*time.Millisecond),
		freeze("gateway frozen beyond the lease", lease+200*time.Millisecond, 2600*time.Millisecond),
		freeze("gateway frozen within the lease", 200*time.Millisecond, 700*time.Millisecond),
	}
}

// upstreamFaults are those that hit all requests of a time. Those of single
// requests are planned with each event.
func (w *world) upstreamFaults() []fault {
	all := func(s step, least, most time.Duration) fault {
		return w.lasting(none, everywhere, "upstream: "+s.name, least, most,
			func(*rand.Rand) { w.upstream.all(s) }, func() { w.upstream.all(step{}) })
	}
	faults := []fault{
		w.lasting(none, everywhere, "upstream refuses connections", 200*time.Millisecond, 900*time.Millisecond,
			func(*rand.Rand) { w.upstream.shut() }, w.upstream.open),
	}
	for _, s := range failures {
		if s.name != slow.name {
			faults = append(faults, all(s, 200*time.Millisecond, 700*time.Millisecond))
		}
	}
	return append(faults, w.phpKilled(), w.phpKilled())
}

// phpKilled ends php-fpm with all that it is at.
func (w *world) phpKilled() fault {
	return fault{"php-fpm killed, comes back", func(rng *rand.Rand) {
		over := w.spans.beginAt("fpm", upstreamFault, everywhere, "php-fpm killed, comes back")
		defer over()
		w.php.Kill()
		pause(rng, 0, 500*time.Millisecond)
		w.php.Start()
	}}
}
