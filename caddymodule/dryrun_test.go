package caddymodule

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

var dryRoute = strings.Replace(stripeRoute, "source", "dry_run\nsource", 1)

func TestDryRunLetsEverythingThrough(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"method":          func(r *http.Request) { r.Method = http.MethodDelete },
		"unsigned":        func(r *http.Request) { r.Header.Del("Stripe-Signature") },
		"forged":          func(r *http.Request) { r.Header.Set("Stripe-Signature", "t=1,v1="+strings.Repeat("0", 64)) },
		"too_large":       func(r *http.Request) { setBody(r, []byte(strings.Repeat("x", 501))) },
		"incomplete_body": func(r *http.Request) { r.Body = cutOffBody(`{"id"`) },
	} {
		t.Run(name, func(t *testing.T) {
			var got int64
			g := newGateway(t, strings.Replace(dryRoute, "source", "max_body 500B\nsource", 1), func(w http.ResponseWriter, r *http.Request) error {
				got, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusTeapot)
				return nil
			})
			r := signed(t, "stripe", "evt_1")
			spoil(r)
			want := max(r.ContentLength, 0)
			if name == "incomplete_body" {
				want = int64(len(`{"id"`))
			}
			expect(t, g.do(r), http.StatusTeapot, "")
			if got != want {
				t.Errorf("the upstream got %d bytes of %d", got, want)
			}
			line := g.logs.last(t, "delivery")
			if line["result"] != "rejected" || line["reason"] != name || line["dry_run"] != true {
				t.Errorf("the log says %v", line)
			}
			if g.store.calls.Load() != 0 {
				t.Error("a record was written")
			}
		})
	}
}

func TestDryRunReportsDuplicatesAndLetsThemThrough(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, dryRoute, func(w http.ResponseWriter, r *http.Request) error {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if len(body) == 0 {
			t.Error("the body is gone")
		}
		w.Header().Set("X-Upstream", r.Header.Get(resultHeader))
		w.WriteHeader(http.StatusOK)
		return nil
	})
	for _, want := range []string{"first", "duplicate", "duplicate"} {
		resp := g.send("stripe", "evt_1")
		expect(t, resp, 200, want)
		if got := resp.Header.Get("X-Upstream"); got != want {
			t.Errorf("the upstream was told %q", got)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestDryRunSettlesByWhatItSees(t *testing.T) {
	for name, c := range map[string]struct {
		up   func(w http.ResponseWriter) error
		want dedupe.State
	}{
		"accepted": {func(w http.ResponseWriter) error { w.WriteHeader(200); return nil }, dedupe.Completed},
		"by Write": {func(w http.ResponseWriter) error { _, err := w.Write([]byte("x")); return err }, dedupe.Completed},
		"by ReadFrom": {func(w http.ResponseWriter) error {
			_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("x")})
			return err
		}, dedupe.Completed},
		"interim": {func(w http.ResponseWriter) error { w.WriteHeader(103); w.WriteHeader(500); return nil }, dedupe.Failed},
		"refused": {func(w http.ResponseWriter) error { w.WriteHeader(500); return nil }, dedupe.Failed},
		"error":   {func(http.ResponseWriter) error { return io.ErrUnexpectedEOF }, dedupe.InDoubt},
	} {
		g := newGateway(t, dryRoute, func(w http.ResponseWriter, _ *http.Request) error { return c.up(w) })
		g.send("stripe", "evt_1")
		if s := g.store.state(g.source + ":evt_1"); s != c.want {
			t.Errorf("%s: the record is %v", name, s)
		}
	}
}

func TestDryRunPassesErrorsAndPanicsOn(t *testing.T) {
	g := newGateway(t, "handle_errors {\nrespond handled 418\n}\n"+dryRoute, func(http.ResponseWriter, *http.Request) error {
		return io.ErrUnexpectedEOF
	})
	expect(t, g.send("stripe", "evt_1"), http.StatusTeapot, "first")

	g = newGateway(t, dryRoute, func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("got panic %v", p)
			}
		}()
		g.send("stripe", "evt_1")
	}()
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.InDoubt {
		t.Errorf("the record is %v", s)
	}
}

func TestOnlyTheOwnerOfAClaimSettlesItInADryRun(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, dryRoute, up.serve)
	first := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the first call")
	copied := g.start(signed(t, "stripe", "evt_1"))
	receive(t, up.called, "the call of the copy") // it is not held up
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.InFlight {
		t.Errorf("the record is %v", s)
	}
	before := g.store.calls.Load()
	close(up.goOn)
	expect(t, receive(t, first, "the first answer"), 200, "first")
	expect(t, receive(t, copied, "the second answer"), 200, "in-flight")
	if n := g.store.calls.Load() - before; n != 1 {
		t.Errorf("%d settlements", n)
	}
}
