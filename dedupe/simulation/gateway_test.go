package simulation

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// gateway is one process with a Gate.
type gateway struct {
	w    *world
	id   int
	gate *dedupe.Gate
	// skew is how wrong its clock is.
	skew   time.Duration
	policy dedupe.Policy

	dead   bool
	diedAt time.Duration
	frozen bool
	waits  []func() // what it will do when it thaws
	pauses []span
	cutOff []span // when the store cannot be reached from here

	// buried ends what is left of a dead process when the history is over.
	buried   atomic.Bool
	calls    []*call
	timers   []*timer
	claimed  map[string]string // the token of its last answered claim, by key
	failedAt map[string]time.Duration
}

func (w *world) newGateway() *gateway {
	g := &gateway{
		w: w, id: len(w.gateways), skew: w.between(-10*time.Minute, 10*time.Minute), policy: w.plan.policy,
		claimed: make(map[string]string), failedAt: make(map[string]time.Duration),
	}
	if w.chance(0.3) { // it is being configured anew
		g.policy.Lease = w.between(leaseTime/2, 2*leaseTime)
	}
	g.gate = dedupe.New(client{g}, dedupe.Options{Clock: clock{g}, Observer: observer{g}, Timeout: storeTimeout})
	w.gateways = append(w.gateways, g)
	return g
}

// act lets the process do something: now, when it thaws, or never.
func (g *gateway) act(do func()) {
	switch {
	case g.dead:
	case g.frozen:
		g.waits = append(g.waits, do)
	default:
		do()
	}
}

// crash ends a process: nothing of it acts again, and its senders see the
// connection break.
func (w *world) crash(place int) {
	g := w.slots[place]
	if g.dead {
		return
	}
	w.note("g%d dies", g.id)
	g.dead, g.diedAt, g.waits = true, w.time(), nil
	for _, a := range w.attempts {
		if a.gateway == g {
			a.fail("the gateway died")
		}
	}
}

func (w *world) restart(place int) {
	if g := w.slots[place]; g.dead {
		w.slots[place] = w.newGateway()
		w.note("g%d starts in the place of g%d", w.slots[place].id, g.id)
	}
}

// freeze stops a process for a while: its timers fire when it thaws.
func (g *gateway) freeze(d time.Duration) {
	if g.dead || g.frozen || d <= 0 {
		return
	}
	w := g.w
	w.note("g%d freezes for %v", g.id, d)
	g.frozen = true
	g.pauses = append(g.pauses, span{w.time(), w.time() + d})
	w.after(d, func() {
		if g.dead {
			return
		}
		w.note("g%d thaws", g.id)
		g.frozen = false
		for _, do := range g.waits {
			w.after(w.between(0, 2*time.Millisecond), func() { g.act(do) })
		}
		g.waits = nil
	})
}

// bury ends the goroutines of a dead process, so that the history can end.
func (g *gateway) bury() {
	g.buried.Store(true)
	for len(g.calls) > 0 || len(g.timers) > 0 {
		calls, timers := g.calls, g.timers
		g.calls, g.timers = nil, nil
		for _, c := range calls {
			c.finish(errLost)
		}
		for _, t := range timers {
			t.fire()
		}
		g.w.quiesce()
	}
}

// end closes all processes and looks at what they leave.
func (w *world) end() {
	for _, a := range w.attempts {
		a.cancel()
	}
	w.quiesce()
	for _, g := range w.gateways {
		if g.dead {
			g.bury()
			continue
		}
		closed := false
		go func() {
			g.gate.Close(context.Background())
			w.post(post{kind: postClosed, gate: g.id, do: func() { closed = true }})
		}()
		w.quiesce()
		w.run()
		if !closed {
			w.violate("g%d does not close", g.id)
		}
	}
}

// clock is the clock of one process.
type clock struct{ g *gateway }

func (c clock) Now() time.Time { return epoch.Add(c.g.w.time() + c.g.skew) }

func (c clock) AfterFunc(d time.Duration, f func()) func() bool {
	w := c.g.w
	t := &timer{g: c.g, f: f}
	at := w.time() + d
	w.post(post{kind: postTimer, gate: c.g.id, id: int64(at), do: func() {
		c.g.timers = append(c.g.timers, t)
		w.at(at+w.between(0, time.Millisecond), func() { c.g.act(t.fire) })
	}})
	return t.stop
}

type timer struct {
	g    *gateway
	f    func()
	over atomic.Bool
}

func (t *timer) stop() bool { return !t.over.Swap(true) }

// fire is called by the scheduler.
func (t *timer) fire() {
	if i := slices.Index(t.g.timers, t); i >= 0 {
		t.g.timers = slices.Delete(t.g.timers, i, i+1)
	}
	if !t.over.Swap(true) {
		go t.f()
	}
}

// observer counts on that nothing is given up while the store can be reached.
type observer struct{ g *gateway }

func (o observer) tell(what, key string, do func()) {
	o.g.w.post(post{kind: postTold, gate: o.g.id, name: what + " " + key, do: func() {
		o.g.w.note("g%d: %s of %s", o.g.id, what, key)
		do()
	}})
}

func (o observer) Spooled(key string)                            {}
func (o observer) SpoolFailed(err error)                         {}
func (o observer) ClaimLost(key string)                          { o.tell("claim lost", key, func() {}) }
func (o observer) RenewFailed(string, error)                     {}
func (o observer) Deferred(string, dedupe.SettlementKind, error) {}
func (o observer) Written(key string, kind dedupe.SettlementKind) {
	o.tell("written "+string(kind), key, func() {})
}
func (o observer) Lost(key string, kind dedupe.SettlementKind) {
	o.tell("lost "+string(kind), key, func() { o.g.w.violate("backlog: g%d gave up the %s of %s", o.g.id, kind, key) })
}
