package tests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestCountersAndLogLinesAddUpToTheRequests(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "handshake get", "lease 1s"))
	s := harness.NewSender(t, "paymos")
	sent := make(map[string]int)
	send := func(result, want string, d *harness.Delivery) {
		t.Helper()
		g.Expect(t, d, want)
		sent[result]++
	}
	for range 5 {
		d := s.Event(harness.Unique("evt"))
		send("first", "200 first", d)
		send("duplicate", "200 duplicate", d)
	}
	busy := s.Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(busy.Event, harness.After(latch, harness.Status(500)), harness.Reset(), harness.Status(200))
	call := g.Begin(t, harness.HTTP1, busy)
	u.Await(t, busy.Event, 1)
	send("in-flight", "503 in-flight", busy)
	latch.Release()
	call.Answer()
	sent["first"]++
	send("retry", "502 retry", busy)
	harness.Eventually(t, "the event in doubt passes", func() bool {
		a := g.Send(t, busy)
		sent[a.Word()]++
		return a.String() == "200 possible-repeat"
	})
	send("rejected", "401", busy.With("X-Webhook-Signature"))
	send("rejected", "401", busy.With("X-Webhook-Signature", "t=1,v1=00"))
	send("rejected", "400", s.WithBody("", []byte(`{}`)))
	get := s.Event(harness.Unique("evt"))
	get.Method, get.Body = http.MethodGet, nil
	send("handshake", "200", get)
	put := s.Event(harness.Unique("evt"))
	put.Method = http.MethodPut
	send("rejected", "405", put)
	assertCounted(t, u, g, sent)
}

// assertCounted compares the gateway's books with what was sent.
func assertCounted(t *testing.T, u *harness.Upstream, g *harness.Gateway, sent map[string]int) {
	t.Helper()
	total := 0
	for result, n := range sent {
		total += n
		if got := g.Metric("deliveries_total", fmt.Sprintf("result=%q", result)); got != float64(n) {
			t.Errorf("%d deliveries were %s, and %v are counted", n, result, got)
		}
	}
	if got := g.Metric("deliveries_total"); got != float64(total) {
		t.Errorf("%d requests were sent, and %v are counted", total, got)
	}
	if got := g.Metric("rejections_total"); got != float64(sent["rejected"]) {
		t.Errorf("%d deliveries were rejected, and %v are counted by reason", sent["rejected"], got)
	}
	if got := g.Metric("outcomes_total"); got != float64(u.Total()-sent["handshake"]) {
		t.Errorf("the upstream got %d deliveries, and %v outcomes are counted", u.Total()-sent["handshake"], got)
	}
	lines := 0
	harness.Eventually(t, "every request is in the log", func() bool {
		lines = len(g.Logs(func(e harness.Entry) bool { return e.Text("msg") == "delivery" }))
		return lines >= total
	})
	if lines != total {
		t.Errorf("%d requests made %d log lines", total, lines)
	}
	if got := g.Metric("upstream_deliveries"); got != 0 {
		t.Errorf("%v deliveries are said to be in the upstream still", got)
	}
}

func TestLogHoldsNoSecretSignatureOrBody(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t, "--requirepass", "the-redis-password")
	g := harness.StartGateway(t, proxied(u, "upstream_timeout 1s", "secret {env.SECRET}", "previous_secret {env.PREVIOUS}"),
		harness.WithRedis(r.Addr, "password {env.PASSWORD}"), harness.WithGlobal("debug"),
		harness.WithEnv("SECRET="+harness.Secret, "PREVIOUS=the-previous-secret", "PASSWORD=the-redis-password"))
	s := harness.NewSender(t, "paymos")
	secrets := []string{harness.Secret, harness.Secret[6:], "the-redis-password", "the-previous-secret"}
	private := []string{"the-cookie", "the-token", "the-body"}
	deliver := func(change func(*harness.Delivery) *harness.Delivery, behaviour harness.Behaviour) {
		id := harness.Unique("evt")
		d := s.WithBody(id, fmt.Appendf(nil, `{"event_id":%q,"x":"the-body"}`, id)).With("Cookie", "the-cookie").With("Authorization", "the-token")
		d = change(d)
		u.On(id, behaviour)
		if _, mac, ok := strings.Cut(d.Header.Get("X-Webhook-Signature"), "v1="); ok {
			private = append(private, mac)
		}
		g.Send(t, d)
	}
	same := func(d *harness.Delivery) *harness.Delivery { return d }
	for _, b := range []harness.Behaviour{harness.Status(200), harness.Status(500), harness.Reset(), harness.Hang(), harness.CutOffChunked(200)} {
		deliver(same, b)
	}
	deliver(func(d *harness.Delivery) *harness.Delivery {
		return d.With("X-Webhook-Signature", "t=1767225600,v1="+strings.Repeat("ab", 32))
	}, harness.Status(200))
	deliver(func(d *harness.Delivery) *harness.Delivery {
		return s.Signed(d.Event, d.Body, time.Now().Add(-time.Hour))
	}, harness.Status(200))
	deliver(func(*harness.Delivery) *harness.Delivery { return s.WithBody("x", []byte(`{"y":"the-body"}`)) }, harness.Status(200))
	deliver(func(*harness.Delivery) *harness.Delivery { return s.WithBody("x", []byte(`{"event_id":"the-body`)) }, harness.Status(200))
	r.Kill()
	deliver(same, harness.Status(200))
	g.AwaitLog(t, "delivery", `"reason":"store"`)
	lines := g.OwnLines()
	if len(lines) < 10 {
		t.Fatalf("only %d lines of ours are in the log", len(lines))
	}
	assertHoldNone(t, lines, private)
	assertHoldNone(t, g.Output(), secrets)
}

func assertHoldNone(t *testing.T, lines, texts []string) {
	t.Helper()
	for _, line := range lines {
		for _, text := range texts {
			if strings.Contains(line, text) {
				t.Errorf("the log holds %q: %s", text, line)
			}
		}
	}
}

func TestDeliveryLineTellsTheWholeStory(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, "log\nlog_append word {http.webhook_dedupe.result}\n"+
		proxied(u, "log_field invoice json data.invoice_id", "log_field agent header User-Agent"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).With("User-Agent", "sender/2")
	g.Expect(t, d, "200 first")
	g.Expect(t, d, "200 duplicate")
	first, second := g.AwaitDelivery(t, d.Event, 1), g.AwaitDelivery(t, d.Event, 2)
	if first.Text("result") != "first" || first.Text("outcome") != "accepted" || first.Text("invoice") != "inv_1" || first.Text("agent") != "sender/2" ||
		first.Number("status") != 200 || first.Number("attempt") != 1 || first.Number("size") != float64(len(d.Body)) {
		t.Errorf("the first delivery is logged as %v", first)
	}
	if second.Text("result") != "duplicate" || second.Number("done_at") == 0 {
		t.Errorf("the duplicate is logged as %v", second)
	}
	var access []harness.Entry
	harness.Eventually(t, "the access log has both", func() bool {
		access = g.Logs(func(e harness.Entry) bool { return strings.HasPrefix(e.Text("logger"), "http.log.access") })
		return len(access) == 2
	})
	fields, _ := access[1]["webhook_dedupe"].(map[string]any)
	if fields["result"] != "duplicate" || fields["event_id"] != d.Event || fields["source"] != "pay" || access[1].Text("word") != "duplicate" {
		t.Errorf("the access log says %v", access[1])
	}
}

func TestSendCommandMakesAcceptableDeliveries(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, allSenders(u))
	for _, name := range []string{"adyen-banking", "github", "paymos", "shopify", "slack", "standard-webhooks", "stripe", "zoom"} {
		text, _ := harness.Route(name)
		secret := g.Write("secret.txt", text+"\n")
		for _, want := range []string{"first", "duplicate"} {
			out, ok := g.Run("webhook-dedupe", "send", "--sender", name, "--secret", "@"+secret, "--url", g.URL+at(name), "--event-id", "evt_"+name)
			if !ok || !strings.Contains(out, "Webhook-Dedupe: "+want) {
				t.Errorf("%s: it ended well %v, and printed\n%s", name, ok, out)
			}
		}
	}
	out, ok := g.Run("webhook-dedupe", "send", "--sender", "paymos", "--secret", "wrong", "--url", g.URL+at("paymos"))
	if ok || !strings.Contains(out, "401") {
		t.Errorf("with a wrong secret it ended well %v, and printed\n%s", ok, out)
	}
}
