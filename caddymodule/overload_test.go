package caddymodule

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// blocking is an upstream that tells of each call and waits to be let on.
type blocking struct {
	called, goOn chan struct{}
}

func newBlocking() *blocking { return &blocking{make(chan struct{}, 10), make(chan struct{})} }

func (b *blocking) serve(w http.ResponseWriter, _ *http.Request) error {
	b.called <- struct{}{}
	<-b.goOn
	w.WriteHeader(http.StatusOK)
	return nil
}

// asking is a request's context that tells when somebody begins to wait for the
// sender to hang up: a copy does, once it waits for another delivery.
type asking struct {
	context.Context
	once  *sync.Once
	asked chan struct{}
}

func (a asking) Done() <-chan struct{} {
	a.once.Do(func() { close(a.asked) })
	return a.Context.Done()
}

// sendWaiting sends a copy and returns when it waits.
func (g *gateway) sendWaiting(r *http.Request) <-chan *http.Response {
	g.t.Helper()
	ctx := asking{r.Context(), new(sync.Once), make(chan struct{})}
	answer := g.start(r.WithContext(ctx))
	receive(g.t, ctx.asked, "the copy to wait")
	return answer
}

// start serves a request in the background.
func (g *gateway) start(r *http.Request) <-chan *http.Response {
	answer := make(chan *http.Response, 1)
	go func() { answer <- g.do(r) }()
	return answer
}

func limited(n int) string {
	return strings.Replace(stripeRoute, "source", "wait 1m\nmax_in_flight "+strconv.Itoa(n)+"\nsource", 1)
}

func TestBusyUpstreamIsSpared(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, limited(1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the first call")

	before := g.store.calls.Load()
	resp := g.send("stripe", "evt_2")
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != 503 || err != nil || seconds < 1 || seconds > 10 {
		t.Errorf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if g.store.calls.Load() != before {
		t.Error("the event was claimed")
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "busy"); n != 1 {
		t.Errorf("%v counted as busy", n)
	}
	close(up.goOn)
	expect(t, receive(t, first, "the first answer"), 200, "first")
	for _, id := range []string{"evt_2", "evt_3", "evt_4"} { // the place is free with the answer
		expect(t, g.send("stripe", id), 200, "first")
	}
}

func TestWaitingCopyTakesNoPlace(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, limited(2), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the first call")
	copied := g.sendWaiting(signed(t, "stripe", "evt_1"))
	other := g.start(signed(t, "stripe", "evt_2"))
	receive(t, up.called, "the call of another event")
	close(up.goOn)
	expect(t, receive(t, first, "the first answer"), 200, "first")
	expect(t, receive(t, copied, "the answer to the copy"), 200, "duplicate")
	expect(t, receive(t, other, "the other answer"), 200, "first")
}

func TestCopyWaitsForTheDeliveryInFlight(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, strings.Replace(stripeRoute, "source", "wait 1m\nsource", 1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	copied := g.sendWaiting(signed(t, "stripe", "evt_1"))
	close(up.goOn)
	expect(t, receive(t, first, "the first answer"), 200, "first")
	expect(t, receive(t, copied, "the answer to the copy"), 200, "duplicate")
}

func TestWaitingCopyHoldsNoBody(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, strings.Replace(stripeRoute, "source", "wait 1m\nsource", 1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	held := buffers.used.Load()
	copied := g.sendWaiting(signed(t, "stripe", "evt_1"))
	if now := buffers.used.Load(); held == 0 || now != held {
		t.Errorf("%d bytes are held with a copy that waits, %d without", now, held)
	}
	close(up.goOn)
	receive(t, first, "the first answer")
	receive(t, copied, "the answer to the copy")
}

func TestCopyThatMayNotWaitIsSentAway(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, strings.Replace(stripeRoute, "source", "wait 0\nsource", 1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 503, "in-flight")
	if resp.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(up.goOn)
	receive(t, first, "the first answer")
}

func TestSenderThatHangsUpDoesNotEndItsDelivery(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, stripeRoute, up.serve)
	ctx, hangUp := context.WithCancel(context.Background())
	first := g.start(signed(t, "stripe", "evt_1").WithContext(ctx))
	receive(t, up.called, "the call")
	hangUp()
	close(up.goOn)
	receive(t, first, "the end")
	expect(t, g.send("stripe", "evt_1"), 200, "duplicate")
	if line := g.logs.lines(t, "delivery")[0]; line["sender_gone"] != true || line["outcome"] != "accepted" {
		t.Errorf("the log says %v", line)
	}
}

func TestWaitingCopyOfASenderThatHangsUpEnds(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, strings.Replace(stripeRoute, "source", "wait 1m\nsource", 1), up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call")
	ctx, hangUp := context.WithCancel(context.Background())
	copied := g.sendWaiting(signed(t, "stripe", "evt_1").WithContext(ctx))
	hangUp()
	expect(t, receive(t, copied, "the end of the copy"), 503, "in-flight")
	close(up.goOn)
	receive(t, first, "the first answer")
}
