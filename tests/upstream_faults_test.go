package tests

import (
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// faults is a site with a route for each way to reach no upstream, besides the
// usual one at /pay and an impatient one at /slow. Leases are short.
func faults(t *testing.T, u *harness.Upstream) string {
	closed := harness.ClosedPort(t)
	return route("/pay", "paymos", "lease 3s") +
		route("/slow", "paymos", "lease 3s", "upstream_timeout 1s") +
		route("/hold", "paymos", "lease 1s", "upstream_timeout 1s", "on_unknown hold") +
		route("/closed", "paymos", "lease 3s") + "reverse_proxy /closed* " + closed + "\n" +
		route("/none", "paymos", "lease 3s") + "reverse_proxy /none* {\nto " + closed + "\nfail_duration 10m\n}\n" +
		route("/nobody", "paymos", "lease 3s") +
		"@proxied path /pay* /slow* /hold*\nreverse_proxy @proxied " + u.Addr
}

func TestUpstreamThatSaysNoGetsTheEventAgainAtOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	for name, c := range map[string]struct {
		answer harness.Behaviour
		want   string // what the sender gets
	}{
		"500":                {harness.Status(500), "500 first"},
		"503":                {harness.Status(503), "503 first"},
		"404":                {harness.Status(404), "404 first"},
		"422":                {harness.Status(422), "422 first"},
		"400":                {harness.Status(400), "400 first"},
		"410":                {harness.Status(410), "410 first"},
		"301":                {harness.Redirect(301, "/pay/"), "502 first"},
		"302":                {harness.Redirect(302, "https://login.example.com/"), "502 first"},
		"307":                {harness.Redirect(307, "/pay/"), "502 first"},
		"308":                {harness.Redirect(308, "/pay/"), "502 first"},
		"304":                {harness.Status(304), "502 first"},
		"500 after 103":      {harness.Interim(harness.Status(500), 103), "500 first"},
		"500 with a 2 MB":    {harness.Huge(500, 2<<20, false), "500 first"},
		"301 with a 2 MB":    {harness.Huge(301, 2<<20, true), "502 first"},
		"500 in 2 MB chunks": {harness.Huge(500, 2<<20, true), "500 first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			u.On(d.Event, c.answer, harness.Status(503), harness.Status(200))
			if a := g.Expect(t, d, c.want); a.Status == 502 && a.Header.Get("Location") != "" {
				t.Error("a redirect's Location reaches the sender")
			}
			g.Expect(t, d, "503 retry")
			g.Expect(t, d, "200 retry")
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first", "retry", "retry")
		})
	}
}

func TestEventThatNeverLeftTheGatewayIsRetriedAtOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	for path, want := range map[string]string{"/closed": "502 first", "/nobody": "502 first"} {
		d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To(path)
		g.Expect(t, d, want)
		g.Expect(t, d, strings.Replace(want, "first", "retry", 1))
	}
	// The first failure takes the only upstream out of service.
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To("/none")
	g.Expect(t, d, "502 first")
	if a := g.Expect(t, d, "503 retry"); a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After while no upstream is available")
	}
	if e := g.AwaitDelivery(t, d.Event, 2); e.Text("outcome") != "not-sent" {
		t.Errorf("the log calls it %q", e.Text("outcome"))
	}
}

func TestEventWithoutACompleteAnswerIsInDoubt(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	for name, c := range map[string]struct {
		path    string
		failure harness.Behaviour
		want    string // what the sender gets
	}{
		"hangs":                   {"/slow", harness.Hang(), "504 first"},
		"resets":                  {"/pay", harness.Reset(), "502 first"},
		"closes":                  {"/pay", harness.Close(), "502 first"},
		"breaks off the head":     {"/pay", harness.CutOffHead(200), "502 first"},
		"breaks off the body":     {"/pay", harness.CutOffLength(200), "502 first"},
		"breaks off its chunks":   {"/pay", harness.CutOffChunked(200), "502 first"},
		"breaks off a 500":        {"/pay", harness.CutOffLength(500), "502 first"},
		"only ever says 103":      {"/slow", harness.Interim(harness.Hang(), 103), "504 first"},
		"answers no HTTP":         {"/pay", harness.Raw("OK\r\n\r\n"), "502 first"},
		"hangs after half a body": {"/slow", hangAfterHalf(), "502 first"},
		"says 499":                {"/pay", harness.Status(499), "502 first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To(c.path)
			u.On(d.Event, c.failure, harness.Status(500), harness.Status(200))
			if a := g.Expect(t, d, c.want); a.Header.Get("Retry-After") == "" {
				t.Error("a sender whose event is in doubt is not told when to come again")
			}
			g.Expect(t, d, "503 in-flight")
			g.RetryUntil(t, d, "500 possible-repeat", "503 in-flight")
			// The doubt stays, whatever comes between, until the event is done.
			g.Expect(t, d, "200 possible-repeat")
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first", "possible-repeat", "possible-repeat")
			if e := g.AwaitDelivery(t, d.Event, 1); e.Text("outcome") != "in-doubt" {
				t.Errorf("the log calls it %q", e.Text("outcome"))
			}
		})
	}
}

// hangAfterHalf sends the head and a part of the body, and no more.
func hangAfterHalf() harness.Behaviour {
	return harness.Partial("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")
}

func TestHeldEventWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	for name, failure := range map[string]harness.Behaviour{"hangs": harness.Hang(), "resets": harness.Reset()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To("/hold")
			u.On(d.Event, failure, harness.Status(200))
			if a := g.Send(t, d); a.Status < 500 || a.Word() != "first" {
				t.Fatalf("the first delivery got %q", a)
			}
			g.RetryUntil(t, d, "503 held", "503 in-flight")
			if a := g.Expect(t, d, "503 held"); a.Header.Get("Retry-After") == "" {
				t.Error("a held event is not told when to come again")
			}
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestRefusedEventIsNotHeld(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To("/hold")
	u.On(d.Event, harness.Status(500), harness.Status(200))
	g.Expect(t, d, "500 first")
	g.Expect(t, d, "200 retry")
	g.Expect(t, d, "200 duplicate")
}

func TestCompleteAnswersOfAllKindsAreAccepted(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	for name, c := range map[string]struct {
		answer harness.Behaviour
		want   string
		size   int
	}{
		"204":                      {harness.Status(204), "204 first", 0},
		"202":                      {harness.Status(202), "202 first", 17},
		"200 without a body":       {harness.Reply(200, "text/plain", ""), "200 first", 0},
		"200 after 103 and 102":    {harness.Interim(harness.Status(200), 103, 102), "200 first", 17},
		"3 MB with a length":       {harness.Huge(200, 3<<20, false), "200 first", 3 << 20},
		"3 MB in chunks":           {harness.Huge(200, 3<<20, true), "200 first", 3 << 20},
		"exactly what is held":     {harness.Huge(200, 1<<20, false), "200 first", 1 << 20},
		"until the end of a line":  {harness.Raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end"), "200 first", 13},
		"an old HTTP/1.0 receiver": {harness.Raw("HTTP/1.0 200 OK\r\n\r\nhello"), "200 first", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			u.On(d.Event, c.answer)
			if a := g.Expect(t, d, c.want); len(a.Body) != c.size {
				t.Errorf("the sender got %d bytes, want %d", len(a.Body), c.size)
			}
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestLongAnswerThatBreaksOffIsSeenToBeBroken(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	u.On(d.Event, harness.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"+strings.Repeat("x", 2<<20)))
	if a := g.Send(t, d); a.Err == nil {
		t.Fatalf("the sender took an answer that broke off for a whole one: %q, %d bytes", a, len(a.Body))
	}
}

func TestSwitchOfProtocolsNobodyAskedForIsNoAnswer(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, faults(t, u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	u.On(d.Event, harness.Raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), harness.Status(200))
	g.Expect(t, d, "502 first")
	g.RetryUntil(t, d, "200 possible-repeat", "503 in-flight")
	g.Expect(t, d, "200 duplicate")
}
