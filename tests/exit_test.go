package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestExitWaitsForDeliveriesUnderWay(t *testing.T) {
	t.Parallel()
	plain := func(*harness.Gateway) {}
	for _, store := range []string{"file", "redis"} {
		for _, c := range []struct {
			name     string
			protocol harness.Protocol
			tls      harness.Option
		}{{"HTTP1", harness.HTTP1, plain}, {"HTTP2", harness.HTTP2, plain}, {"HTTP2 over TLS", harness.HTTP2, harness.WithTLS()}} {
			for sender, gone := range map[string]bool{"sender gone": true, "sender waits": false} {
				t.Run(store+" "+c.name+" "+sender, func(t *testing.T) {
					t.Parallel()
					g := harness.NewGateway(t, stores[store](t), c.tls)
					exitWithTen(t, g, c.protocol, gone)
				})
			}
		}
	}
}

// exitWithTen ends a gateway while ten deliveries are in the upstream.
func exitWithTen(t *testing.T, g *harness.Gateway, p harness.Protocol, gone bool) {
	u := harness.StartUpstream(t)
	g.Start(proxied(u))
	s := harness.NewSender(t, "paymos")
	latch := harness.NewLatch()
	var events []*harness.Delivery
	var calls []*harness.Call
	for range 10 {
		d := s.Event(harness.Unique("evt"))
		u.On(d.Event, harness.After(latch, harness.Status(200)))
		events = append(events, d)
		calls = append(calls, g.Begin(t, p, d))
		u.Await(t, d.Event, 1)
	}
	if gone {
		for _, c := range calls {
			c.HangUp()
		}
	}
	g.BeginTermination()
	harness.Eventually(t, "the gateway takes no requests any more", func() bool { return !g.Listens() })
	// Time enough to exit for a gateway that does not wait.
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !g.Running() {
			t.Fatal("the gateway exits while deliveries are in the upstream")
		}
	}
	latch.Release()
	for _, c := range calls {
		if a := c.Answer(); !gone && a.String() != "200 first" {
			t.Errorf("a sender that waited got %q", a)
		}
	}
	harness.Eventually(t, "the gateway has ended", func() bool { return !g.Running() })
	g.Start("")
	for _, d := range events {
		g.Expect(t, d, "200 duplicate")
		assertReached(t, u, d.Event, "first")
	}
}

func TestExitAfterTheGracePeriodLeavesTheEventInDoubt(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "lease 2s"), harness.WithGlobal("grace_period 1s"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)), harness.Status(200))
	call := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	call.HangUp()
	g.Terminate()
	harness.Eventually(t, "the gateway has ended", func() bool { return !g.Running() })
	// The delivery says so itself, if it was still given up before the end.
	if len(g.Logs(func(e harness.Entry) bool {
		return strings.HasPrefix(e.Text("msg"), "exiting while deliveries are in the upstream") ||
			e.Text("event_id") == d.Event && e.Text("outcome") == "in-doubt"
	})) == 0 {
		t.Error("the log does not say that the event is in doubt")
	}
	latch.Release()
	g.Start("")
	g.RetryUntil(t, d, "200 possible-repeat", "503 in-flight")
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first", "possible-repeat")
}

func TestExitWritesWhatTheStoreCouldNotTakeBefore(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	proxy := harness.StartRedisProxy(t, r.Addr)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(proxy.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	call := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	proxy.Decide(func([]string) harness.Fate { return harness.CutBefore })
	latch.Release()
	if a := call.Answer(); a.String() != "200 first" {
		t.Fatalf("the sender got %q", a)
	}
	g.BeginTermination()
	harness.Eventually(t, "the gateway takes no requests any more", func() bool { return !g.Listens() })
	proxy.Decide(func([]string) harness.Fate { return harness.Pass })
	harness.Eventually(t, "the gateway has ended", func() bool { return !g.Running() })
	g.Start("")
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first")
}

func TestWhatCouldNotBeWrittenAtTheExitIsNamedAndWrittenAtTheStart(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr), harness.WithGlobal("grace_period 2s"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	call := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	r.Kill()
	latch.Release()
	if a := call.Answer(); a.String() != "200 first" {
		t.Fatalf("the sender got %q", a)
	}
	g.Terminate()
	e := g.AwaitLog(t, "a finished event could not be written to the store", d.Event)
	if e.Text("level") != "error" {
		t.Errorf("it is logged at level %q", e.Text("level"))
	}
	g.Start("")
	if a := g.Send(t, d); a.Status == 200 && a.Word() != "duplicate" {
		t.Fatalf("before the store is back, the sender got %q", a)
	}
	r.Start()
	g.RetryUntil(t, d, "200 duplicate", "503", "503 in-flight")
	harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, d.Event) })
	assertReached(t, u, d.Event, "first")
}
