package caddymodule

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

var verifyOnlyRoute = strings.Replace(stripeRoute, "source", "event_id none\nsource", 1)

func TestWithoutAnEventIDCopiesReachTheUpstream(t *testing.T) {
	var told atomic.Value
	var calls atomic.Int64
	store := newFakeStore()
	store.noOpen.Store(true) // it is not even opened
	g := newGatewayOn(t, store, verifyOnlyRoute, func(w http.ResponseWriter, r *http.Request) error {
		calls.Add(1)
		told.Store(r.Header.Get(resultHeader))
		w.WriteHeader(http.StatusAccepted)
		return nil
	})
	expect(t, g.send("stripe", "evt_1"), http.StatusAccepted, "verified")
	expect(t, g.send("stripe", "evt_1"), http.StatusAccepted, "verified")
	expect(t, g.send("stripe", "", "no JSON at all"), http.StatusAccepted, "verified")
	forged := signed(t, "stripe", "evt_1")
	forged.Header.Set("Stripe-Signature", "t=1,v1="+strings.Repeat("0", 64))
	expect(t, g.do(forged), http.StatusUnauthorized, "")
	if calls.Load() != 3 || told.Load() != "verified" {
		t.Errorf("%d calls, the last one told %q", calls.Load(), told.Load())
	}
	if store.opened.Load() != 0 || store.calls.Load() != 0 {
		t.Error("the store was touched")
	}
	if n := count(t, "deliveries_total", "source", g.source, "result", "verified"); n != 3 {
		t.Errorf("%v are counted", n)
	}
	line := g.logs.lines(t, "delivery")[0]
	if line["result"] != "verified" || line["event_id"] != nil || line["outcome"] != "accepted" {
		t.Errorf("the log says %v", line)
	}
}

func TestWithoutAnEventIDAFailureIsStillNoSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		up   caddyhttp.HandlerFunc
		want int
	}{
		"refused":  {answering(new(atomic.Int64), http.StatusTeapot, ""), http.StatusTeapot},
		"redirect": {answering(new(atomic.Int64), http.StatusFound, ""), http.StatusBadGateway},
		"cut off":  {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, http.StatusBadGateway},
	} {
		g := newGateway(t, "handle_errors {\nrespond handled 200\n}\n"+verifyOnlyRoute, c.up)
		resp := g.send("stripe", "evt_1")
		expect(t, resp, c.want, "verified")
		if got := resp.Header.Get("Retry-After"); c.want == http.StatusBadGateway && got != "1" {
			t.Errorf("%s: Retry-After %q, and there is no lease to wait for", name, got)
		}
	}
}

func TestWithoutAnEventIDPlacesAreCounted(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, strings.Replace(verifyOnlyRoute, "source", "max_in_flight 1\nsource", 1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	expect(t, g.send("stripe", "evt_1"), http.StatusServiceUnavailable, "")
	close(up.goOn)
	expect(t, receive(t, first, "the answer"), 200, "verified")
	expect(t, g.send("stripe", "evt_1"), 200, "verified")
}

func TestWithoutAnEventIDADryRunLetsForgeriesThroughToo(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, strings.Replace(verifyOnlyRoute, "source", "dry_run\nsource", 1), counting(&calls))
	expect(t, g.send("stripe", "evt_1"), 200, "verified")
	forged := signed(t, "stripe", "evt_1")
	forged.Header.Del("Stripe-Signature")
	expect(t, g.do(forged), 200, "")
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestWithoutAnEventIDNothingIsPromisedThatNeedsOne(t *testing.T) {
	for line, want := range map[string]string{
		"on_unknown hold":   "on_unknown hold needs to know the event",
		"replay_guard on":   "replay_guard needs an event id",
		"event_id json id":  "none excludes every other source",
		"replay_guard what": "replay_guard",
	} {
		_, err := provision(t, routes("", stripe("event_id none\n"+line)), newLogBook())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("%s: %v", line, err)
		}
	}
	h := provisioned(t, stripe("event_id none"))
	if h.replayGuard {
		t.Error("the replay guard is on")
	}
}

// Nothing is kept that another gateway, or another route, could share.
func TestWithoutAnEventIDTheSourceIsOnlyAName(t *testing.T) {
	config := routes("shared", "webhook_dedupe stripe {\nsecret a\nevent_id none\n}", "webhook_dedupe stripe {\nsecret b\nevent_id none\n}")
	if _, err := provision(t, config, newLogBook()); err != nil {
		t.Error(err)
	}
}
