package tests

import (
	"net/http"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestHandshakesReachTheReceiverAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	var site string
	for _, name := range []string{"meta", "asana", "woocommerce", "trello", "slack"} {
		site += route("/"+name, "", signature("header X-Signature"), "event_id header X-Id", "handshake "+name)
	}
	g := harness.StartGateway(t, site+"reverse_proxy "+u.Addr, harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	challenge := []byte(`{"token":"x","challenge":"PROBE9","type":"url_verification"}`)
	slack := harness.CustomSender(t, verify.Config{
		Scheme: &verify.Scheme{Headers: []string{"X-Signature"}}, EventID: []verify.IDSource{{Kind: "header", Name: "X-Id"}},
	}).WithBody(harness.Unique("evt"), challenge)
	greeting := func(method, path, body string) *harness.Delivery {
		event := harness.Unique("evt")
		return &harness.Delivery{
			Event: event, Method: method, Path: path, Body: []byte(body),
			Header: http.Header{harness.EventHeader: {event}},
		}
	}
	form := "application/x-www-form-urlencoded"
	u.On(slack.Event, harness.Reply(200, "text/plain", "PROBE9"), harness.Reply(200, "text/plain", "PROBE9"))
	for name, d := range map[string]*harness.Delivery{
		"Meta":        greeting("GET", "/meta?hub.mode=subscribe&hub.challenge=PROBE9&hub.verify_token=abc", ""),
		"Asana":       greeting("POST", "/asana", "").With("X-Hook-Secret", "b537207f"),
		"WooCommerce": greeting("POST", "/woocommerce", "webhook_id=12").With("Content-Type", form),
		"Trello":      greeting("HEAD", "/trello", ""),
		"Slack":       slack.To("/slack").With("X-Id"),
	} {
		answer := func(_ *harness.Upstream, w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Hook-Secret"] = r.Header["X-Hook-Secret"]
			_, _ = w.Write([]byte("PROBE9"))
		}
		u.On(d.Event, answer, answer)
		for range 2 {
			a := g.Expect(t, d, "200")
			if a.Body != "PROBE9" && d.Method != http.MethodHead || a.Header.Get("X-Hook-Secret") != d.Header.Get("X-Hook-Secret") {
				t.Errorf("%s: the sender got %q, %v", name, a.Body, a.Header)
			}
		}
		if seen := u.Requests(d.Event); len(seen) != 2 || seen[0].URI != d.Path || string(seen[0].Body) != string(d.Body) {
			t.Errorf("%s: the upstream got %v", name, seen)
		}
	}
	for want, near := range map[string][]*harness.Delivery{
		"405": {
			greeting("GET", "/meta?hub.mode=subscribe&hub.challenge=PROBE9&hub.verify_token=abc&event=paid", ""),
			greeting("GET", "/meta?hub.mode=subscribe&hub.challenge=PROBE9&hub.verify_token=abc", `{"event":"paid"}`),
			greeting("GET", "/trello", ""),
			greeting("HEAD", "/trello", `{"event":"paid"}`).InChunks(),
		},
		"401": {
			greeting("POST", "/asana", `{"event":"paid"}`).With("X-Hook-Secret", "b537207f"),
			greeting("POST", "/woocommerce", "webhook_id=12&event=paid").With("Content-Type", form),
			greeting("POST", "/slack", string(challenge)),
			slack.To("/slack").With("X-Signature", "00"),
		},
	} {
		for _, d := range near {
			d.Event = harness.Unique("evt")
			g.Expect(t, d.With(harness.EventHeader, d.Event), want)
			assertReached(t, u, d.Event)
		}
	}
	if n := g.Metric("deliveries_total", `result="handshake"`); n != 10 {
		t.Errorf("%v handshakes are counted", n)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
}
