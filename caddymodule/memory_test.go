package caddymodule

import (
	"net/http"
	"strings"
	"testing"
)

// TestBodiesThatFindNoRoomComeAgain: the sender is told when, the upstream and
// the store are not asked, and the same delivery passes once there is room.
func TestBodiesThatFindNoRoomComeAgain(t *testing.T) {
	calls := 0
	g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error {
		calls++
		w.WriteHeader(http.StatusOK)
		return nil
	})
	defer buffers.allow(buffers.limit.Load())
	body := `{"id":"evt_1","padding":"` + strings.Repeat("x", 1000) + `"}`
	buffers.allow(buffers.used.Load() + 500)
	resp := g.send("stripe", "evt_1", body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || calls != 0 {
		t.Errorf("got %s, Retry-After %q, %d upstream calls", resp.Status, resp.Header.Get("Retry-After"), calls)
	}
	buffers.allow(buffers.used.Load() + 5000)
	if resp := g.send("stripe", "evt_1", body); resp.Header.Get(resultHeader) != "first" || calls != 1 {
		t.Errorf("got %s, %q, %d upstream calls", resp.Status, resp.Header.Get(resultHeader), calls)
	}
}

// TestEveryDeliveryGivesItsRoomBack, whatever becomes of it.
func TestEveryDeliveryGivesItsRoomBack(t *testing.T) {
	up := func(w http.ResponseWriter, r *http.Request) error {
		switch r.Header.Get("X-Do") {
		case "panic":
			panic("in the upstream")
		case "refuse":
			w.WriteHeader(http.StatusTeapot)
		case "accept":
			w.WriteHeader(http.StatusOK)
		}
		return nil
	}
	before := buffers.used.Load()
	for _, route := range []string{stripeRoute, strings.Replace(stripeRoute, "source", "dry_run\nsource", 1)} {
		g := newGateway(t, route, up)
		for _, do := range []string{"accept", "refuse", "panic", "nothing"} {
			r := signed(t, "stripe", "evt_"+do)
			r.Header.Set("X-Do", do)
			func() {
				defer func() { _ = recover() }()
				g.do(r)
			}()
		}
		g.send("stripe", "evt_accept") // a duplicate
		forged := signed(t, "stripe", "evt_2")
		forged.Header.Set("Stripe-Signature", "t=1,v1=00")
		g.do(forged)
		g.store.away.Store(true)
		g.send("stripe", "evt_3")
		g.store.heal()
	}
	if after := buffers.used.Load(); after != before {
		t.Errorf("%d bytes are still taken", after-before)
	}
}
