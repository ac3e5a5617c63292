package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// inBody is a sender that signs like GitHub and has its id in the body.
func inBody(t *testing.T, path string) *harness.Sender {
	t.Helper()
	return harness.CustomSender(t, verify.Config{Sender: "github", EventID: []verify.IDSource{{Kind: verify.FromJSON, Name: path}}})
}

// signedAs signs a body and names the event for the test.
func signedAs(s *harness.Sender, event, body string) *harness.Delivery {
	d := s.WithBody("unused", []byte(body)).With(harness.EventHeader, event)
	d.Event = event
	return d
}

func TestEventWithoutASingleIDIsRefusedAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, route("/pay", "github")+route("/json", "github", "event_id json data.id")+"reverse_proxy "+u.Addr, harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	cases := withoutID(t)
	for name, d := range cases {
		if a := g.Send(t, d); a.String() != "400" {
			t.Errorf("%s: the sender got %q", name, a)
		}
	}
	assertReached(t, u, "evt")
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	counted := 0.0
	for _, reason := range []string{"missing_id", "ambiguous_id", "bad_id"} {
		n := g.Metric("rejections_total", fmt.Sprintf("reason=%q", reason))
		if n == 0 {
			t.Errorf("no delivery is counted as %s", reason)
		}
		counted += n
	}
	if counted != float64(len(cases)) {
		t.Errorf("%v of %d deliveries are counted as without an id", counted, len(cases))
	}
}

// withoutID are genuine deliveries without one single id, by the reason that they
// are refused for.
func withoutID(t *testing.T) map[string]*harness.Delivery {
	t.Helper()
	header := harness.NewSender(t, "github").Event("evt")
	cases := map[string]*harness.Delivery{
		"missing_id no header":        header.With("X-GitHub-Delivery"),
		"missing_id empty header":     header.With("X-GitHub-Delivery", ""),
		"missing_id blank header":     header.With("X-GitHub-Delivery", "   "),
		"ambiguous_id two headers":    header.With("X-GitHub-Delivery", "evt_a", "evt_b"),
		"ambiguous_id one is missing": header.With("X-GitHub-Delivery", "evt_a", ""),
	}
	s := inBody(t, "data.id")
	for name, body := range map[string]string{
		"missing_id nothing":       ``,
		"bad_id no JSON":           `id=7`,
		"missing_id no member":     `{"data":{}}`,
		"missing_id other case":    `{"data":{"ID":"x"}}`,
		"missing_id null":          `{"data":{"id":null}}`,
		"missing_id empty":         `{"data":{"id":""}}`,
		"missing_id blanks":        `{"data":{"id":" \t "}}`,
		"bad_id array":             `{"data":{"id":[]}}`,
		"bad_id object":            `{"data":{"id":{}}}`,
		"bad_id true":              `{"data":{"id":true}}`,
		"bad_id exponent":          `{"data":{"id":1e3}}`,
		"bad_id fraction":          `{"data":{"id":1000.0}}`,
		"ambiguous_id twice":       `{"data":{"id":"a","id":"b"}}`,
		"ambiguous_id outer twice": `{"data":{"id":"a"},"data":{"id":"b"}}`,
		"bad_id batch":             `[{"data":{"id":"a"}},{"data":{"id":"b"}}]`,
		"bad_id cut off":           `{"data":{"id":"a"`,
	} {
		cases[name] = signedAs(s, "evt", body).To("/json")
	}
	return cases
}

func TestIDsDifferAsTheirSendersMeanThem(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "github", "event_id json id")+"reverse_proxy "+u.Addr)
	s := inBody(t, "id")
	event := harness.Unique("evt")
	// Each is an event of its own, though a careless reader takes some for others.
	ids := []string{
		`9007199254918487`, `9007199254918488`, `9007199254918489`, `"9007199254918487"`, `-1`, `1`, `"1"`, `"01"`,
		`"ORDER-aB9"`, `"order-ab9"`, `"a"`, `" a"`, `"a "`, `"\u00e9"`, `"e\u0301"`, `"a:b"`, `"a\u0000b"`, `"a\nb"`,
	}
	for _, id := range ids {
		// The same fill makes the bodies differ by the id alone.
		g.Expect(t, signedAs(s, event, `{"id":`+id+`}`), "200 first")
	}
	for _, id := range ids {
		g.Expect(t, signedAs(s, event, `{"id":`+id+`}`), "200 duplicate")
	}
	if n := len(u.Requests(event)); n != len(ids) {
		t.Errorf("%d ids made %d requests", len(ids), n)
	}
}

func TestEqualSpellingsOfAnIDAreOneEvent(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "github", "event_id json a\\.b.id", "on_reused_id duplicate")+
		route("/head", "github", "on_reused_id duplicate")+"reverse_proxy "+u.Addr)
	s := inBody(t, `a\.b.id`)
	event := harness.Unique("evt")
	g.Expect(t, signedAs(s, event, `{"a.b":{"id":"A/é"}}`).With("Content-Type", "text/plain; charset=UTF-8"), "200 first")
	g.Expect(t, signedAs(s, event, `{ "x":1e400, "a.b" : {"id":"\u0041\/\u00e9"}}`), "200 duplicate")
	assertReached(t, u, event, "first")
	// The comma is an ordinary character, and an equal line says nothing new.
	h := harness.NewSender(t, "github").Event(harness.Unique("evt")).To("/head")
	g.Expect(t, h.With("X-GitHub-Delivery", "evt_a, evt_b"), "200 first")
	g.Expect(t, h.With("X-GitHub-Delivery", "evt_a, evt_b", "evt_a, evt_b"), "200 duplicate")
}

func TestReplayUnderAnotherIDIsRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "stableops")+route("/off", "stableops", "replay_guard off")+"reverse_proxy "+u.Addr)
	s := harness.NewSender(t, "stableops")
	d := s.Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	if a := g.Expect(t, d.With("X-Event-Id", "evt_other"), "503"); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After for what may be an honest mistake")
	}
	assertReached(t, u, d.Event, "first")
	if n := g.Metric("rejections_total", `reason="replayed"`); n != 1 {
		t.Errorf("%v deliveries are counted as replayed", n)
	}
	// The event itself may come again, signed anew or not.
	g.Expect(t, d, "200 duplicate")
	g.Expect(t, s.Signed(d.Event, d.Body, time.Now().Add(-time.Minute)), "200 duplicate")
	// Nor does a failed attempt give its signature to others.
	failed := s.WithBody(harness.Unique("evt"), []byte(`{"n":2}`))
	u.On(failed.Event, harness.Status(500), harness.Status(200))
	g.Expect(t, failed, "500 first")
	g.Expect(t, failed.With("X-Event-Id", "evt_other"), "503")
	g.Expect(t, failed, "200 retry")
	g.Expect(t, d.To("/off"), "200 first")
	g.Expect(t, d.To("/off").With("X-Event-Id", "evt_other"), "200 first")
}

func TestOneIDWithTwoBodies(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/unsigned", "github")+route("/signed", "standard-webhooks")+
		route("/trusting", "github", "on_reused_id duplicate")+route("/careful", "svix", "on_reused_id forward")+"reverse_proxy "+u.Addr)
	for path, c := range map[string]struct{ sender, want string }{
		"/unsigned": {"github", "200 first"},
		"/signed":   {"standard-webhooks", "200 duplicate"},
		"/trusting": {"github", "200 duplicate"},
		"/careful":  {"svix", "200 first"},
	} {
		s := harness.NewSender(t, c.sender)
		id := harness.Unique("evt")
		one, two := s.WithBody(id, []byte(`{"n":1}`)).To(path), s.WithBody(id, []byte(`{"n":2}`)).To(path)
		g.Expect(t, one, "200 first")
		g.Expect(t, two, c.want)
		g.Expect(t, one, "200 duplicate")
		g.Expect(t, two, "200 duplicate")
		if n := g.Metric("reused_ids_total", `source="`+path[1:]+`"`); n < 1 {
			t.Errorf("%s: the reuse is not counted", path)
		}
		g.AwaitLog(t, "two different bodies", id)
	}
}

func TestConstantHeaderInPlaceOfAnIDLosesNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "github", "event_id header X-Hook-Config-Id")+"reverse_proxy "+u.Addr)
	s := harness.CustomSender(t, verify.Config{Sender: "github", EventID: []verify.IDSource{{Kind: verify.FromHeader, Name: "X-Hook-Config-Id"}}})
	event := harness.Unique("evt")
	for i := range 5 {
		d := s.WithBody("9", fmt.Appendf(nil, `{"event":%d}`, i)).With(harness.EventHeader, event)
		g.Expect(t, d, "200 first")
		g.Expect(t, d, "200 duplicate")
	}
	if n := g.Metric("reused_ids_total"); n != 4 && n != 5 {
		t.Errorf("%v reuses of the id are counted", n)
	}
	assertReached(t, u, event, "first", "first", "first", "first", "first")
}

func TestSignedIDCountsAndNotTheHeader(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	g.Expect(t, d.With("X-Webhook-Id", "evt_forged"), "200 duplicate")
	g.Expect(t, d.With("X-Webhook-Id"), "200 duplicate")
	assertReached(t, u, d.Event, "first")
	if n := g.Metric("id_mismatches_total"); n != 1 {
		t.Errorf("%v differences are counted", n)
	}
	g.AwaitLog(t, "the header names another event", d.Event)
}

func TestIDsOfOtherKinds(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/query", "github", "event_id query id")+route("/body", "github", "event_id body_sha256")+
		route("/both", "github", "event_id header X-GitHub-Delivery", "event_id json n")+"reverse_proxy "+u.Addr)
	s := harness.NewSender(t, "github")
	d := s.WithBody(harness.Unique("evt"), []byte(`{"n":1}`))
	g.Expect(t, d.To("/query?x=1&id=a%20b"), "200 first")
	g.Expect(t, d.To("/query?id=a+b"), "200 duplicate")
	g.Expect(t, d.To("/query?id=a&id=b"), "400")
	g.Expect(t, d.To("/query?id="), "400")
	g.Expect(t, d.To("/body"), "200 first")
	g.Expect(t, d.To("/body").With("X-GitHub-Delivery", "other"), "200 duplicate")
	g.Expect(t, d.To("/both"), "200 first")
	g.Expect(t, d.To("/both").With("X-GitHub-Delivery", "other"), "200 first")
	g.Expect(t, s.WithBody(d.Event, []byte(`{"n":2}`)).To("/both"), "200 first")
	g.Expect(t, s.WithBody(d.Event, []byte(`{"m":2}`)).To("/both"), "400")
}
