package faults

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// proxied is a site in front of u.
func proxied(u *harness.Upstream, lines ...string) string {
	lines = append([]string{"source pay", "secret " + harness.Secret}, lines...)
	return "webhook_dedupe /pay* paymos {\n" + strings.Join(lines, "\n") + "\n}\nreverse_proxy " + u.Addr
}

func TestExitSettlesEveryDelivery(t *testing.T) {
	t.Parallel()
	for protocol, transport := range transports {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u, "wait 0s"), harness.WithTLS(), harness.WithServer("protocols h3"))
			for _, gone := range []bool{false, true} {
				exitWithTen(t, u, g, transport(), gone)
			}
		})
	}
}

// exitWithTen ends the gateway while ten deliveries are in the upstream, and
// starts it again.
func exitWithTen(t *testing.T, u *harness.Upstream, g *harness.Gateway, rt http.RoundTripper, gone bool) {
	sender, latch := harness.NewSender(t, "paymos"), harness.NewLatch()
	var events []*harness.Delivery
	var calls []*call
	for range 10 {
		d := sender.Event(harness.Unique("evt"))
		u.On(d.Event, harness.After(latch, harness.Status(200)))
		events, calls = append(events, d), append(calls, begin(t, rt, g.URL, d))
		u.Await(t, d.Event, 1)
	}
	if gone {
		for _, c := range calls {
			c.hangUp()
			<-c.answer
		}
	}
	g.BeginTermination()
	harness.Eventually(t, "the gateway takes no requests any more", func() bool { return !g.Listens() })
	latch.Release()
	if !gone {
		for _, c := range calls {
			if a := <-c.answer; !strings.HasPrefix(a, "200 first") {
				t.Errorf("a sender that waited got %q", a)
			}
		}
	}
	if c, ok := rt.(io.Closer); ok {
		c.Close()
	}
	harness.Eventually(t, "the gateway has ended", func() bool { return !g.Running() })
	g.Start("")
	for _, d := range events {
		if a := <-begin(t, transports["HTTP/1.1"](), g.URL, d).answer; !strings.HasPrefix(a, "200 duplicate") {
			t.Errorf("sender gone: %t: %s got %q after the restart", gone, d.Event, a)
		}
		if words := u.Words(d.Event); len(words) != 1 {
			t.Errorf("sender gone: %t: %s reached the upstream as %q", gone, d.Event, words)
		}
	}
}

// exiting is a gateway with one delivery in the upstream.
type exiting struct {
	u     *harness.Upstream
	g     *harness.Gateway
	event *harness.Delivery
	latch *harness.Latch
	call  *harness.Call
}

func newExiting(t *testing.T, options ...harness.Option) *exiting {
	x := &exiting{u: harness.StartUpstream(t), event: harness.NewSender(t, "paymos").Event(harness.Unique("evt")), latch: harness.NewLatch()}
	x.g = harness.StartGateway(t, proxied(x.u, "lease 1s", "wait 0s"), options...)
	x.u.On(x.event.Event, harness.After(x.latch, harness.Status(200)), harness.Status(200))
	x.call = x.g.Begin(t, harness.HTTP1, x.event)
	x.u.Await(t, x.event.Event, 1)
	return x
}

// assertInDoubt fails the test unless the event is let through once more, as a
// possible repeat, and is a duplicate only then.
func (x *exiting) assertInDoubt(t *testing.T) {
	t.Helper()
	x.g.Start("")
	x.g.RetryUntil(t, x.event, "200 possible-repeat", "503 in-flight")
	x.g.Expect(t, x.event, "200 duplicate")
	if words := x.u.Words(x.event.Event); len(words) != 2 {
		t.Errorf("the event reached the upstream as %q", words)
	}
}

func (x *exiting) awaitEnd(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the gateway has ended", func() bool { return !x.g.Running() })
}

func TestSecondSignalDoesNotCutTheExitShort(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run("SIGTERM and "+name, func(t *testing.T) {
			t.Parallel()
			x := newExiting(t)
			x.call.HangUp()
			signal(t, x.g, syscall.SIGTERM)
			x.g.AwaitLog(t, "shutting down apps, then terminating", "SIGTERM")
			signal(t, x.g, second)
			harness.Eventually(t, "the gateway takes no requests any more", func() bool { return !x.g.Listens() })
			x.latch.Release()
			x.awaitEnd(t)
			x.g.Start("")
			x.g.Expect(t, x.event, "200 duplicate")
		})
	}
}

// TestSecondInterruptEndsAtOnce: that is Caddy's own way out. Nothing waits, and
// the event is in doubt.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	t.Parallel()
	x := newExiting(t)
	signal(t, x.g, syscall.SIGINT)
	x.g.AwaitLog(t, "shutting down", "SIGINT")
	signal(t, x.g, syscall.SIGINT)
	x.awaitEnd(t)
	if a := x.call.Answer(); a.Err == nil {
		t.Errorf("the sender got %q", a)
	}
	x.latch.Release()
	x.assertInDoubt(t)
}

func TestExitEndsWithTheGracePeriod(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		name := map[bool]string{false: "sender waits", true: "sender gone"}[gone]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := harness.StartRedis(t)
			x := newExiting(t, harness.WithGlobal("grace_period 1s"), harness.WithRedis(r.Addr))
			if gone {
				x.call.HangUp()
			}
			x.g.Terminate() // it ends though the upstream is still at work
			if a := x.call.Answer(); a.Err == nil && a.Status < 300 {
				t.Errorf("the sender got %q", a)
			}
			x.latch.Release()
			x.assertInDoubt(t)
		})
	}
}
