package caddymodule

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// users is how many use the open store of g.
func (g *gateway) users() int64 { return g.app.lent.Load().users.Load() }

func TestEveryDeliveryHoldsTheStore(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, stripeRoute, up.serve)
	if n := g.users(); n != 1 {
		t.Errorf("%d users, want the configuration alone", n)
	}
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	if n := g.users(); n != 3 { // the handler's and the upstream call's
		t.Errorf("%d users during a delivery", n)
	}
	close(up.goOn)
	receive(t, first, "the answer")
	if n := g.users(); n != 1 {
		t.Errorf("%d users are left", n)
	}
	if n := g.store.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}
}

func TestStoreIsClosedAfterTheLastDeliverySettled(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, stripeRoute, up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	if err := g.app.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if g.store.isClosed() {
		t.Fatal("closed under a delivery")
	}
	close(up.goOn)
	expect(t, receive(t, first, "the answer"), 200, "first")
	receive(t, g.store.closed, "the store to be closed")
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.Completed {
		t.Errorf("the record is %v", s)
	}
}

func TestReloadDuringADeliveryKeepsItsClaim(t *testing.T) {
	up := newBlocking()
	old := newGateway(t, stripeRoute, up.serve)
	first := old.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")

	var calls atomic.Int64
	reloaded := newGatewayOn(t, old.store, "route {\nwebhook_dedupe stripe {\nsource $SOURCE\nsecret $SECRET\nwait 1m\n}\nupstream\n}", counting(&calls))
	if err := old.app.Cleanup(); err != nil {
		t.Fatal(err)
	}
	copied := reloaded.sendWaiting(signed(t, "stripe", "evt_1"))
	close(up.goOn)
	expect(t, receive(t, first, "the first answer"), 200, "first")
	expect(t, receive(t, copied, "the answer to the copy"), 200, "duplicate")
	if calls.Load() != 0 || old.store.opened.Load() != 1 || old.store.isClosed() {
		t.Errorf("%d calls, opened %d times, closed %v", calls.Load(), old.store.opened.Load(), old.store.isClosed())
	}
}

func TestBackgroundMessagesGoToTheLatestConfigurationsLog(t *testing.T) {
	old := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	reloaded := newGatewayOn(t, old.store, stripeRoute, counting(new(atomic.Int64)))
	if err := old.app.Cleanup(); err != nil {
		t.Fatal(err)
	}
	before := len(old.logs.String())
	old.store.noComplete.Store(true)
	expect(t, reloaded.send("stripe", "evt_1"), 200, "first")
	reloaded.logs.last(t, "the store could not take an outcome; trying again")
	if len(old.logs.String()) != before {
		t.Error("the old log was written to")
	}
}

func TestConfigurationWithoutRoutesOpensNoStore(t *testing.T) {
	g := newGateway(t, "respond hello", nil)
	if n := g.store.opened.Load(); n != 0 {
		t.Errorf("opened %d times", n)
	}
	r, _ := http.NewRequest(http.MethodGet, "http://gateway.test/", nil)
	if resp := g.do(r); resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestValidatingOpensNoStore(t *testing.T) {
	store := newFakeStore()
	_, err := provision(t, "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore test "+store.name+"\n}\n}\nhttp://x {\nwebhook_dedupe stripe {\nsecret x\n}\n}", newLogBook())
	if err != nil || store.opened.Load() != 0 {
		t.Errorf("opened %d times, %v", store.opened.Load(), err)
	}
}

func TestMemoryStoreServes(t *testing.T) {
	logs := newLogBook()
	ctx, err := provision(t, "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore memory\n}\n}\nhttp://x {\nwebhook_dedupe stripe {\nsecret x\n}\n}", logs)
	if err != nil {
		t.Fatal(err)
	}
	logs.last(t, "the memory store forgets all events when Caddy exits: copies that come after that reach the upstream again")
	app, _ := ctx.App(appName)
	a := app.(*App)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if _, open := openStores.References("memory"); !open {
		t.Error("no store is open")
	}
	if err := a.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if _, open := openStores.References("memory"); open {
		t.Error("the store is open still")
	}
}

func TestObservedLossesAreLoggedAndCounted(t *testing.T) {
	g := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	lent, err := g.app.borrow()
	if err != nil {
		t.Fatal(err)
	}
	defer lent.giveBack()
	o := observing{&lent.logger}
	lost, claims := count(t, "settlements_lost_total"), count(t, "claims_lost_total")
	o.Lost("shop:evt_1", "complete")
	o.ClaimLost("shop:evt_2")
	o.RenewFailed("shop:evt_3", errAway)
	if count(t, "settlements_lost_total")-lost != 1 || count(t, "claims_lost_total")-claims != 1 {
		t.Error("not counted")
	}
	for message, want := range map[string][2]string{
		"an outcome was never written to the store: a copy of this event may reach the upstream again": {"error", "shop:evt_1"},
		"a lease could not be renewed; trying again":                                                   {"warn", "shop:evt_3"},
	} {
		if line := g.logs.last(t, message); line["level"] != want[0] || line["event"] != want[1] {
			t.Errorf("the log says %v", line)
		}
	}
}
