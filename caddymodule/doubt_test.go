package caddymodule

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// leaveInDoubt leaves an event in doubt whose lease is over.
func (s *fakeStore) leaveInDoubt(t *testing.T, key string) {
	t.Helper()
	h := dedupe.Hold{Token: "dead", Attempt: 1, Lease: 1, TTL: time.Hour}
	if _, err := s.Store.Claim(context.Background(), key, h, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Doubt(context.Background(), key, h); err != nil {
		t.Fatal(err)
	}
}

func TestEventInDoubtIsDeliveredAgainMarked(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, counting(&calls))
	g.store.leaveInDoubt(t, g.source+":evt_1")
	expect(t, g.send("stripe", "evt_1"), 200, "possible-repeat")
	expect(t, g.send("stripe", "evt_1"), 200, "duplicate")
	if line := g.logs.lines(t, "delivery")[0]; line["attempt"] != 2.0 {
		t.Errorf("the log says %v", line)
	}
}

func TestEventInDoubtIsHeldIfTheRouteSaysSo(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, strings.Replace(stripeRoute, "source", "on_unknown hold\nsource", 1), counting(&calls))
	g.store.leaveInDoubt(t, g.source+":evt_1")
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 503, "held")
	if resp.Header.Get("Retry-After") != "30" || calls.Load() != 0 {
		t.Errorf("Retry-After %q, %d calls", resp.Header.Get("Retry-After"), calls.Load())
	}
	if line := g.logs.last(t, "delivery"); line["level"] != "warn" {
		t.Errorf("the log says %v", line)
	}
}
