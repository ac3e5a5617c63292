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
	return []fault{
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
	for _, s := range failures[:12] {
		faults = append(faults, all(s, 200*time.Millisecond, 700*time.Millisecond))
	}
	return faults
}
