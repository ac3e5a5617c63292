package caddymodule

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func TestOneLineAndOneCountForEveryRequest(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error {
		if calls.Add(1) == 2 {
			return errors.New("broken")
		}
		w.WriteHeader(http.StatusOK)
		return nil
	})
	g.send("stripe", "evt_1")                // first
	g.send("stripe", "evt_1")                // duplicate
	g.send("stripe", "evt_2")                // first, in doubt
	r := signed(t, "stripe", "evt_3")        // rejected
	r.Header.Del("Stripe-Signature")         //
	g.do(r)                                  //
	g.send("stripe", "evt_4", `{"no":"id"}`) // rejected
	lines := g.logs.lines(t, "delivery")
	if len(lines) != 5 || count(t, "deliveries_total", "source", g.source) != 5 {
		t.Errorf("%d lines, %v counted", len(lines), count(t, "deliveries_total", "source", g.source))
	}
	for result, want := range map[string]float64{"first": 2, "duplicate": 1, "rejected": 2} {
		if got := count(t, "deliveries_total", "source", g.source, "result", result); got != want {
			t.Errorf("%v counted as %s, want %v", got, result, want)
		}
	}
	for outcome, want := range map[string]float64{"accepted": 1, "in-doubt": 1, "refused": 0, "not-sent": 0} {
		if got := count(t, "outcomes_total", "source", g.source, "result", outcome); got != want {
			t.Errorf("%v ended as %s, want %v", got, outcome, want)
		}
	}
	if n := count(t, "upstream_deliveries"); n != 0 {
		t.Errorf("%v are in the upstream", n)
	}
}

func TestLogLineSaysWhatHappened(t *testing.T) {
	site := strings.Replace(stripeRoute, "source", "log_field kind json type\nlog_field agent header user-agent\nlog_field none json nope\nsource", 1)
	g := newGateway(t, site, counting(new(atomic.Int64)))
	r := signed(t, "stripe", "evt_1")
	r.Header.Set("User-Agent", strings.Repeat("A", 1000))
	g.do(r)
	line := g.logs.last(t, "delivery")
	for field, want := range map[string]any{
		"level": "info", "logger": "http.handlers.webhook_dedupe", "source": g.source, "result": "first", "event_id": "evt_1",
		"attempt": 1.0, "outcome": "accepted", "status": 200.0, "size": float64(r.ContentLength), "secret": 1.0, "kind": "invoice.paid",
	} {
		if line[field] != want {
			t.Errorf("%s is %v, want %v", field, line[field], want)
		}
	}
	for _, field := range []string{"reason", "error", "done_at", "reused_id", "sender_gone", "dry_run", "none"} {
		if v, ok := line[field]; ok {
			t.Errorf("%s is %v", field, v)
		}
	}
	if agent, _ := line["agent"].(string); !strings.HasSuffix(agent, "(1000 bytes)") || len(agent) > 300 {
		t.Errorf("agent is %q", agent)
	}
	g.send("stripe", "evt_1")
	if line = g.logs.last(t, "delivery"); line["result"] != "duplicate" || line["done_at"] == nil || line["outcome"] != nil {
		t.Errorf("the log says %v", line)
	}
}

func TestLevelsMakeTroubleStandOut(t *testing.T) {
	for name, c := range map[string]struct {
		up    func(w http.ResponseWriter) error
		level string
	}{
		"accepted": {func(w http.ResponseWriter) error { w.WriteHeader(204); return nil }, "info"},
		"refused":  {func(w http.ResponseWriter) error { w.WriteHeader(404); return nil }, "warn"},
		"redirect": {func(w http.ResponseWriter) error { w.WriteHeader(302); return nil }, "warn"},
		"silent":   {func(http.ResponseWriter) error { return nil }, "error"},
		"in doubt": {func(http.ResponseWriter) error { return errors.New("x") }, "error"},
	} {
		g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error { return c.up(w) })
		g.send("stripe", "evt_1")
		if line := g.logs.last(t, "delivery"); line["level"] != c.level {
			t.Errorf("%s: level %v", name, line["level"])
		}
	}
}

func TestNoLogLineHoldsASecretASignatureOrABody(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, strings.Replace(stripeRoute, "stripe", "paymos", 1), func(w http.ResponseWriter, _ *http.Request) error {
		switch calls.Add(1) {
		case 1:
			return fmt.Errorf("broken")
		case 2:
			panic("boom")
		}
		w.WriteHeader(http.StatusOK)
		return nil
	})
	const private = "private-part-of-the-body"
	var signatures []string
	send := func(r *http.Request) {
		defer func() { _ = recover() }()
		for _, part := range strings.Split(r.Header.Get("X-Webhook-Signature"), ",") {
			if mac, ok := strings.CutPrefix(part, "v1="); ok {
				signatures = append(signatures, mac)
			}
		}
		r.Header.Del("User-Agent")
		g.ServeHTTP(discard{}, r)
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_3"} {
		send(signed(t, "paymos", id, `{"event_id":"`+id+`","x":"`+private+`"}`))
	}
	send(signed(t, "paymos", "evt_1", `{"event_id":["`+private+`"]}`))
	send(signed(t, "paymos", "evt_1", `{"event_id":"a","event_id":"b","x":"`+private+`"}`))
	send(signed(t, "paymos", "evt_1", private))
	forged := signed(t, "paymos", "evt_4", `{"event_id":"evt_4"}`)
	setBody(forged, []byte(private))
	send(forged)
	stale := signedAt(t, "paymos", "evt_5", longAgo, `{"event_id":"evt_5"}`)
	send(stale)

	var ours []string // Caddy's access log prints headers, as its users want it
	for _, line := range strings.Split(g.logs.String(), "\n") {
		if !strings.Contains(line, `"logger":"http.log.access`) {
			ours = append(ours, line)
		}
	}
	text := strings.Join(ours, "\n")
	if n := strings.Count(text, `"msg":"delivery"`); n != 9 || len(signatures) != 9 {
		t.Fatalf("%d deliveries logged, %d signed:\n%s", n, len(signatures), text)
	}
	for _, hidden := range append(signatures, secret, hex.EncodeToString([]byte(secret)), private) {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in the log:\n%s", hidden, text)
		}
	}
}

func TestPlaceholdersAndAccessLogTellTheResult(t *testing.T) {
	site := `header {
		>X-Result "{http.webhook_dedupe.source} {http.webhook_dedupe.event_id} {http.webhook_dedupe.result} {http.webhook_dedupe.attempt} {http.webhook_dedupe.error}"
	}
	` + stripeRoute
	var calls atomic.Int64
	g := newGateway(t, site, func(w http.ResponseWriter, r *http.Request) error {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if got := repl.ReplaceAll("{http.webhook_dedupe.result}{http.webhook_dedupe.unknown}", ""); got != "first" && got != "retry" {
			t.Errorf("the chain reads %q", got)
		}
		if calls.Add(1) == 2 {
			return errors.New("broken")
		}
		w.WriteHeader(http.StatusInternalServerError)
		return nil
	})
	for _, want := range []string{" evt_1 first 1 ", " evt_1 retry 2 broken"} {
		if got := g.send("stripe", "evt_1").Header.Get("X-Result"); got != g.source+want {
			t.Errorf("got %q, want %q", got, g.source+want)
		}
	}
	access := g.logs.last(t, "handled request")["webhook_dedupe"]
	if got := fmt.Sprint(access); got != "map[event_id:evt_1 result:retry source:"+g.source+"]" {
		t.Errorf("the access log says %v", got)
	}
}

func TestGivenUpChainMayReadPlaceholdersOn(t *testing.T) {
	goOn, read := make(chan struct{}), make(chan struct{})
	site := strings.Replace(stripeRoute, "source", "upstream_timeout 10ms\nsource", 1)
	g := newGateway(t, site, func(_ http.ResponseWriter, r *http.Request) error {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		defer close(read)
		for {
			_ = repl.ReplaceAll("{http.webhook_dedupe.result} {http.webhook_dedupe.attempt} {http.webhook_dedupe.error}", "")
			select {
			case <-goOn:
				return nil
			default:
			}
		}
	})
	expect(t, g.send("stripe", "evt_1"), 504, "first")
	close(goOn)
	receive(t, read, "the chain")
}

func TestPanicOfTheChainIsThrownAgainAfterItIsSettled(t *testing.T) {
	g := newGateway(t, stripeRoute, func(http.ResponseWriter, *http.Request) error { panic("boom") })
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("got panic %v", p)
			}
		}()
		g.send("stripe", "evt_1")
	}()
	if line := g.logs.last(t, "a handler panicked"); !strings.Contains(fmt.Sprint(line["stack"]), "report_test.go") {
		t.Errorf("the log says %v", line)
	}
	if line := g.logs.last(t, "delivery"); line["outcome"] != "in-doubt" {
		t.Errorf("the log says %v", line)
	}
}

func TestLongIDsAreShortenedInLogs(t *testing.T) {
	if got := shortened(strings.Repeat("x", 200)); len(got) != 200 {
		t.Errorf("got %d bytes", len(got))
	}
	if got := shortened(strings.Repeat("x", 100_000)); len(got) > 250 || !strings.HasSuffix(got, "(100000 bytes)") {
		t.Errorf("got %q", got)
	}
}
