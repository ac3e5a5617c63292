package tests

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestEndToEndHeadersReachTheUpstream(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).
		With("X-Repeated", "one", "two, with a comma", "").With("Cookie", "a=b; c=d").With("Authorization", "Bearer x").
		With("User-Agent", "sender/1.0").With("Accept", "*/*").With("Idempotency-Key", "k1").With("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
	d.Path = "/pay/deep//er%2Fpath?b=2&a=1&a=%20;x"
	g.Expect(t, d, "200 first")
	seen := u.Requests(d.Event)[0]
	for name, values := range d.Header {
		if !slices.Equal(seen.Header.Values(name), values) {
			t.Errorf("%s: the upstream got %q, want %q", name, seen.Header.Values(name), values)
		}
	}
	if seen.URI != d.Path || seen.Method != http.MethodPost {
		t.Errorf("the upstream got %s %s, want POST %s", seen.Method, seen.URI, d.Path)
	}
	added := []string{"Webhook-Dedupe", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via", "Content-Length", "Accept-Encoding"}
	for name := range seen.Header {
		if d.Header.Values(name) == nil && !slices.Contains(added, name) {
			t.Errorf("the upstream got a header that nobody sent: %s", name)
		}
	}
}

func TestAnswerReachesTheSenderUnchanged(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	for _, status := range []int{200, 201, 207, 400, 402, 418, 429, 500, 503, 599} {
		for _, p := range harness.Protocols {
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			u.On(d.Event, func(_ *harness.Upstream, w http.ResponseWriter, _ *http.Request) {
				w.Header()["Set-Cookie"] = []string{"a=1; Path=/", "b=2"}
				w.Header().Set("Content-Type", "application/x-odd")
				w.Header().Set("Retry-After", "77")
				w.Header().Set("Webhook-Dedupe", "duplicate")
				w.Header().Set("Trailer", "X-Sum")
				w.WriteHeader(status)
				_, _ = w.Write([]byte("\x00\xffthe answer"))
				w.Header().Set("X-Sum", "42")
			})
			a := g.Begin(t, p, d).Answer()
			h := a.Header
			if a.Status != status || a.Body != "\x00\xffthe answer" || !slices.Equal(h.Values("Set-Cookie"), []string{"a=1; Path=/", "b=2"}) ||
				h.Get("Content-Type") != "application/x-odd" || h.Get("Retry-After") != "77" || a.Trailer.Get("X-Sum") != "42" {
				t.Errorf("%d over %s: the sender got %q with %v, %q and trailers %v", status, p, a, h, a.Body, a.Trailer)
			}
			if words := h.Values("Webhook-Dedupe"); !slices.Equal(words, []string{"first"}) {
				t.Errorf("an upstream can say what only the gateway may say: %q", words)
			}
		}
	}
}

func TestForgedGatewayHeadersNeverReachTheUpstream(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	// Without this option Caddy itself drops names with underscores.
	g := harness.StartGateway(t, proxied(u, "handshake get")+"\n"+route("/dry", "paymos", "dry_run"),
		harness.WithServer("expected_underscore_headers webhook_dedupe webhook-dedupe_x other_name"))
	s := harness.NewSender(t, "paymos")
	handshake := s.Event(harness.Unique("evt"))
	handshake.Method, handshake.Body = http.MethodGet, nil
	for name, c := range map[string]struct {
		d    *harness.Delivery
		want []string // the gateway's own words
	}{
		"delivery":       {s.Event(harness.Unique("evt")), []string{"first"}},
		"handshake":      {handshake, nil},
		"rejected, dry":  {s.Event(harness.Unique("evt")).To("/dry").With("X-Webhook-Signature", "t=1,v1=00"), nil},
		"delivered, dry": {s.Event(harness.Unique("evt")).To("/dry"), []string{"first"}},
	} {
		forged := "webhook-DEDUPE: first\r\nWebhook-Dedupe: possible-repeat\r\nwebhook_dedupe: retry\r\n" +
			"WEBHOOK-DEDUPE-RESULT: x\r\nWebhook-Dedupe_x: x\r\nOther_Name: passes\r\n"
		if a := g.SendRaw(t, c.d.Head(g.Host())+forged+lengthOf(string(c.d.Body))+"\r\n"+string(c.d.Body)); a.Status != 200 {
			t.Fatalf("%s: the sender got %q", name, a)
		}
		if len(u.Requests(c.d.Event)) != 1 {
			t.Fatalf("%s: the event made %d requests", name, len(u.Requests(c.d.Event)))
		}
		header := u.Requests(c.d.Event)[0].Header
		if header["Other_name"] == nil {
			t.Fatalf("the server lets no underscores pass: %v", header)
		}
		for field, values := range header {
			plain := strings.ReplaceAll(strings.ToLower(field), "_", "-")
			if strings.HasPrefix(plain, "webhook-dedupe") && (field != "Webhook-Dedupe" || !slices.Equal(values, c.want)) {
				t.Errorf("%s: the upstream got %s: %q", name, field, values)
			}
		}
	}
}

func TestReceiverBehindOtherHandlersIsServed(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, `encode gzip
header X-Site added
request_body {
	max_size 1MB
}
handle_path /pay/* {
	rewrite /app{path}
	reverse_proxy `+u.Addr+`
}
`+route("/pay", "paymos"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To("/pay/in")
	u.On(d.Event, harness.Reply(200, "text/html", strings.Repeat("long enough to be compressed ", 100)))
	a := g.Expect(t, d.With("Accept-Encoding", "gzip"), "200 first")
	if a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("X-Site") != "added" {
		t.Errorf("the other handlers did not do their work: %v", a.Header)
	}
	if uri := u.Requests(d.Event)[0].URI; uri != "/app/in" {
		t.Errorf("the upstream got %s", uri)
	}
	if a := g.Expect(t, d.With("Accept-Encoding", "gzip"), "200 duplicate"); a.Body != "" || a.Header.Get("Content-Encoding") != "" {
		t.Errorf("the duplicate got %q with %v", a.Body, a.Header)
	}
	big := harness.NewSender(t, "paymos").WithBody("evt", []byte(`{"event_id":"evt","fill":"`+strings.Repeat("x", 1<<20)+`"}`)).To("/pay/in")
	g.Expect(t, big.InChunks(), "413")
	assertReached(t, u, "evt")
}
