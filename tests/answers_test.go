package tests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// lengthOf is the header line that says how long a body is.
func lengthOf(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

func TestErrorPagesNeverTurnAFailureIntoSuccess(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, faults(t, u)+"\n"+route("/small", "paymos", "max_body 10")+`
handle_errors {
	respond "all is well" 200
}`, harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	event := func(path string) *harness.Delivery { return s.Event(harness.Unique("evt")).To(path) }
	get := event("/pay")
	get.Method = http.MethodGet
	slow := event("/slow")
	u.On(slow.Event, harness.Hang())
	noID := s.WithBody("", []byte(`{}`))
	for want, d := range map[string]*harness.Delivery{
		"502 first": event("/closed"),
		"504 first": slow,
		"401":       event("/pay").With("X-Webhook-Signature"),
		"413":       event("/small"),
		"405":       get,
		"400":       noID,
	} {
		if a := g.Expect(t, d, want); a.Body != "" {
			t.Errorf("%s: the body is %q", want, a.Body)
		}
	}
	g.Expect(t, event("/nobody"), "502 first")
	r.Kill()
	g.Expect(t, event("/pay"), "503")
}

func TestRouteNeedsNoOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	for _, site := range []string{
		"reverse_proxy " + u.Addr + "\n" + route("/pay", "paymos"),
		"handle /pay* {\nreverse_proxy " + u.Addr + "\n}\n" + route("/pay", "paymos"),
		"handle /pay* {\nreverse_proxy " + u.Addr + "\n" + route("/pay", "paymos") + "\n}",
		"route /pay* {\n" + route("/pay", "paymos") + "reverse_proxy " + u.Addr + "\n}",
	} {
		g := harness.StartGateway(t, site)
		d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
		g.Expect(t, d.With("X-Webhook-Signature"), "401")
		assertReached(t, u, d.Event)
		g.Expect(t, d, "200 first")
		g.Expect(t, d, "200 duplicate")
	}
}

func TestHandshakePassesUnsignedAndTouchesNoStore(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u, "handshake get"), harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	u.On("challenge", harness.Reply(200, "text/plain", "PROBE9"))
	d := &harness.Delivery{
		Event: "challenge", Method: http.MethodGet, Path: "/pay?hub.challenge=PROBE9",
		Header: http.Header{harness.EventHeader: {"challenge"}},
	}
	for range 2 {
		if a := g.Expect(t, d, "200"); a.Body != "PROBE9" {
			t.Errorf("the sender got %q", a.Body)
		}
	}
	if got := u.Requests("challenge"); len(got) != 2 || got[0].URI != d.Path {
		t.Errorf("the upstream got %v", got)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	withBody := *d
	withBody.Body = []byte(`{"event":"paid"}`)
	g.Expect(t, &withBody, "405")
	post := *d
	post.Method = http.MethodPost
	g.Expect(t, &post, "401")
}

func TestOtherMethodsAreRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u)+"\n"+route("/put", "paymos", "methods PUT PATCH", "handshake head"))
	s := harness.NewSender(t, "paymos")
	for _, c := range []struct{ method, path, want, allow string }{
		{"GET", "/pay", "405", "POST"},
		{"PUT", "/pay", "405", "POST"},
		{"OPTIONS", "/pay", "405", "POST"},
		{"POST", "/pay", "200 first", ""},
		{"POST", "/put", "405", "PUT, PATCH, HEAD"},
		{"GET", "/put", "405", "PUT, PATCH, HEAD"},
		{"HEAD", "/put", "200", ""},
		{"PUT", "/put", "200 first", ""},
		{"PATCH", "/put", "200 first", ""},
	} {
		d := s.Event(harness.Unique("evt")).To(c.path)
		d.Method = c.method
		if c.method == http.MethodHead {
			d.Body = nil
		}
		a := g.Expect(t, d, c.want)
		if a.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow is %q, want %q", c.method, c.path, a.Header.Get("Allow"), c.allow)
		}
		if a.Status == 405 {
			assertReached(t, u, d.Event)
		}
	}
}

func TestDryRunLetsEverythingThrough(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u, "dry_run"), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	d := s.Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first", "duplicate")
	keys := len(r.Keys())
	for name, d := range map[string]*harness.Delivery{
		"unsigned": s.Event(harness.Unique("evt")).With("X-Webhook-Signature"),
		"forged":   s.Event(harness.Unique("evt")).With("X-Webhook-Signature", "t=1,v1=00"),
		"stale":    s.Signed("evt_old", []byte(`{"event_id":"evt_old"}`), time.Now().Add(-time.Hour)),
		"no id":    s.WithBody("", []byte(`{}`)).With(harness.EventHeader, harness.Unique("evt")),
	} {
		if a := g.Expect(t, d, "200"); a.Body != "upstream says 200" {
			t.Errorf("%s: the sender got %q", name, a.Body)
		}
	}
	if len(r.Keys()) != keys {
		t.Errorf("deliveries that were not verified made records: %q", r.Keys())
	}
	failed := s.Event(harness.Unique("evt"))
	u.On(failed.Event, harness.Status(500), harness.Status(200))
	g.Expect(t, failed, "500 first")
	g.Expect(t, failed, "200 retry")
	g.Expect(t, failed, "200 duplicate")
	r.Kill()
	g.Expect(t, s.Event(harness.Unique("evt")), "200")
	if n := g.Metric("rejections_total"); n != 5 {
		t.Errorf("%v deliveries are reported as rejected", n)
	}
}

func TestRoutesOwnAnswers(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "paymos", `duplicate 202 "[accepted]" text/x-odd`)+
		route("/two", "paymos", `duplicate 201 "{}"`)+route("/strict", "paymos", "success 200 204")+"reverse_proxy "+u.Addr)
	s := harness.NewSender(t, "paymos")
	for path, want := range map[string][]string{
		"/pay": {"202 duplicate", "[accepted]", "text/x-odd"}, "/two": {"201 duplicate", "{}", "text/plain; charset=utf-8"},
	} {
		d := s.Event(harness.Unique("evt")).To(path)
		g.Expect(t, d, "200 first")
		if a := g.Expect(t, d, want[0]); a.Body != want[1] || a.Header.Get("Content-Type") != want[2] {
			t.Errorf("the duplicate got %q as %q", a.Body, a.Header.Get("Content-Type"))
		}
	}
	d := s.Event(harness.Unique("evt")).To("/strict")
	u.On(d.Event, harness.Status(202), harness.Status(204))
	g.Expect(t, d, "502 first")
	g.Expect(t, d, "204 retry")
	g.Expect(t, d, "200 duplicate")
	if strings.Join(u.Words(d.Event), " ") != "first retry" {
		t.Errorf("the upstream got %q", u.Words(d.Event))
	}
}
