package caddymodule

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func TestStoreThatIsAwayStopsDeliveries(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, counting(&calls))
	g.store.away.Store(true)
	expect(t, g.send("stripe", "evt_1"), 503, "")
	if calls.Load() != 0 {
		t.Error("the upstream was called")
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "store"); n != 1 {
		t.Errorf("%v counted as store", n)
	}
	if line := g.logs.last(t, "delivery"); line["level"] != "error" || line["error"] != errAway.Error() {
		t.Errorf("the log says %v", line)
	}
	g.store.away.Store(false)
	expect(t, g.send("stripe", "evt_1"), 200, "first")
}

func TestForwardingWithoutTheStoreIsMarked(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, strings.Replace(stableopsRoute, "source", "on_store_error forward\nsource", 1), counting(&calls))
	g.store.away.Store(true)
	expect(t, g.send("stableops", "evt_1"), 200, "possible-repeat")
	// What the upstream accepted is a duplicate here, though the store is away.
	expect(t, g.send("stableops", "evt_1"), 200, "duplicate")
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	if line := g.logs.lines(t, "delivery")[0]; line["error"] != errAway.Error() || line["level"] != "warn" {
		t.Errorf("the log says %v", line)
	}
}

func TestAcceptedEventIsAnsweredThoughTheStoreIsAway(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, counting(&calls))
	waiting := count(t, "settlements_waiting")
	g.store.noComplete.Store(true)
	expect(t, g.send("stripe", "evt_1"), 200, "first")
	expect(t, g.send("stripe", "evt_1"), 200, "duplicate")
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	if n := count(t, "settlements_waiting") - waiting; n != 1 {
		t.Errorf("%v settlements wait", n)
	}
	g.logs.last(t, "the outcome could not be written to the store and waits")
	g.logs.last(t, "the store could not take an outcome; trying again")

	g.store.heal()
	_ = g.app.Cleanup() // closes the store, which writes what waits
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.Completed {
		t.Errorf("the record is %v", s)
	}
	if n := count(t, "settlements_waiting") - waiting; n != 0 {
		t.Errorf("%v settlements wait still", n)
	}
	g.logs.last(t, "the store took an outcome that waited")
}

func TestStoreThatDoesNotOpenKeepsTheConfigurationFromStarting(t *testing.T) {
	g := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	if err := g.app.Cleanup(); err != nil {
		t.Fatal(err)
	}
	g.store.noOpen.Store(true)
	if err := g.app.Start(); err == nil {
		t.Error("it started")
	}
	// Routes may be served before the app has been started.
	expect(t, g.send("stripe", "evt_1"), 503, "")
	if line := g.logs.last(t, "delivery"); line["reason"] != "store" {
		t.Errorf("the log says %v", line)
	}
}

func TestReplayGuardFollowsOnStoreError(t *testing.T) {
	g := newGateway(t, stableopsRoute, counting(new(atomic.Int64)))
	g.store.noBind.Store(true)
	expect(t, g.send("stableops", "evt_1"), 503, "")

	g = newGateway(t, strings.Replace(stableopsRoute, "source", "on_store_error forward\nsource", 1), counting(new(atomic.Int64)))
	g.store.noBind.Store(true)
	expect(t, g.send("stableops", "evt_1"), 200, "first")
}
