package caddymodule

import (
	"context"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func TestExitWithoutAGracePeriodWaitsForDeliveries(t *testing.T) {
	p := new(exitPlan)
	ctx, cancel := p.patience()
	defer cancel()
	if _, bounded := ctx.Deadline(); bounded {
		t.Error("the patience has an end")
	}
	ctx, cancel = p.budget()
	defer cancel()
	if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > drainTime {
		t.Errorf("closing a store may take until %v", end)
	}
}

func TestExitEndsWithTheGracePeriod(t *testing.T) {
	p := &exitPlan{grace: time.Hour, end: time.Now().Add(time.Minute)}
	for name, c := range map[string]struct {
		of   func() (context.Context, context.CancelFunc)
		want time.Time
	}{
		"patience": {p.patience, p.end.Add(settleTime)}, // deliveries are told at the end, and have to be settled
		"budget":   {p.budget, p.end},
	} {
		ctx, cancel := c.of()
		defer cancel()
		if end, bounded := ctx.Deadline(); !bounded || !end.Equal(c.want) {
			t.Errorf("%s ends at %v", name, end)
		}
	}
}

// TestUsedUpGracePeriodLeavesTimeToCloseTheStore, or what waits for it could not
// be written.
func TestUsedUpGracePeriodLeavesTimeToCloseTheStore(t *testing.T) {
	p := &exitPlan{grace: time.Second, end: time.Now().Add(-time.Minute)}
	ctx, cancel := p.budget()
	defer cancel()
	if ctx.Err() != nil {
		t.Error("there is no time left")
	}
	ctx, cancel = p.patience()
	defer cancel()
	if ctx.Err() == nil {
		t.Error("deliveries may go on after the grace period")
	}
}

func TestReloadIsNoExit(t *testing.T) {
	p := &exitPlan{grace: time.Hour}
	if err := p.Handle(context.Background(), caddy.Event{}); err != nil || !p.end.IsZero() {
		t.Errorf("the end is set to %v, %v", p.end, err)
	}
}

func TestGracePeriodBeginsOnce(t *testing.T) {
	p := newExitPlan()
	p.allow(time.Hour)
	p.begin()
	first := p.end
	p.allow(2 * time.Hour)
	p.begin()
	if left := time.Until(first); left <= 0 || left > time.Hour || !p.end.Equal(first) {
		t.Errorf("the end was in %v, and then at %v", left, p.end)
	}
}

func TestGracePeriodThatIsOverSaysSo(t *testing.T) {
	p := newExitPlan()
	p.allow(time.Nanosecond)
	p.begin()
	receive(t, p.over.Done(), "the end of the grace period")
}

func TestExitWithoutAGracePeriodHasNoEnd(t *testing.T) {
	p := newExitPlan()
	p.begin()
	if !p.end.IsZero() {
		t.Errorf("it ends at %v", p.end)
	}
}

func TestGracePeriodIsTheServers(t *testing.T) {
	store := newFakeStore()
	ctx, err := provision(t, "{\nadmin off\nauto_https off\ngrace_period 7s\nshutdown_delay 2s\nwebhook_dedupe {\nstore test "+store.name+"\n}\n}\nhttp://x {\nwebhook_dedupe stripe {\nsecret x\n}\n}", newLogBook())
	if err != nil {
		t.Fatal(err)
	}
	if got := gracePeriod(ctx); got != 9*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestExitWaitsForDeliveriesAndClosesTheStores(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, stripeRoute, up.serve)
	ctx, hangUp := context.WithCancel(context.Background())
	first := g.start(signed(t, "stripe", "evt_1").WithContext(ctx))
	receive(t, up.called, "the call")
	hangUp()

	g.store.closing = func() {
		if s := g.store.state(g.source + ":evt_1"); s != dedupe.Completed {
			t.Errorf("the store is closed while the event is %v", s)
		}
	}
	finished := make(chan struct{})
	go func() {
		new(exitPlan).finish(context.Background())
		close(finished)
	}()
	if g.store.isClosed() {
		t.Error("the exit did not wait")
	}
	close(up.goOn)
	receive(t, finished, "the exit")
	receive(t, first, "the answer")
	if !g.store.isClosed() {
		t.Error("the store is open still")
	}
	if err := g.app.Cleanup(); err != nil { // closes nothing twice
		t.Error(err)
	}
}

func TestExitGivesUpAtTheEndOfTheGracePeriod(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, stripeRoute, up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	(&exitPlan{grace: time.Second, end: time.Now()}).finish(context.Background())
	if line := g.logs.last(t, "exiting while deliveries are in the upstream: their events are in doubt"); line["deliveries"] != 1.0 {
		t.Errorf("the log says %v", line)
	}
	close(up.goOn)
	receive(t, first, "the answer")
}
