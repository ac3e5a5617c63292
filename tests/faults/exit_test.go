package faults

import (
	"io"
	"net/http"
	"slices"
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
	for protocol := range transports {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u, "wait 0s"), overTLS...)
			for _, gone := range []bool{false, true} {
				exitWithTen(t, u, g, protocol, gone)
			}
		})
	}
}

// exitWithTen ends the gateway while ten deliveries are in the upstream, and
// starts it again.
func exitWithTen(t *testing.T, u *harness.Upstream, g *harness.Gateway, protocol string, gone bool) {
	rt := transports[protocol]()
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
			if a := <-c.answer; !strings.HasPrefix(a, "200 first "+protocol) {
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
	rt    http.RoundTripper
	call  *call
}

func newExiting(t *testing.T, protocol string, options ...harness.Option) *exiting {
	x := &exiting{
		u: harness.StartUpstream(t), event: harness.NewSender(t, "paymos").Event(harness.Unique("evt")),
		latch: harness.NewLatch(), rt: transports[protocol](),
	}
	x.g = harness.StartGateway(t, proxied(x.u, "lease 1s", "wait 0s"), append(options, overTLS...)...)
	x.u.On(x.event.Event, harness.After(x.latch, harness.Status(200)), harness.Status(200))
	x.call = begin(t, x.rt, x.g.URL, x.event)
	x.u.Await(t, x.event.Event, 1)
	return x
}

// hangUp has the sender go.
func (x *exiting) hangUp() {
	x.call.hangUp()
	<-x.call.answer
}

// expect sends the event again after a restart.
func (x *exiting) expect(t *testing.T, want string, early ...string) {
	t.Helper()
	harness.Eventually(t, "the event's answer is "+want, func() bool {
		a := <-begin(t, transports["HTTP/1.1"](), x.g.URL, x.event).answer
		if a != want && !slices.Contains(early, a) {
			t.Fatalf("the event got %q while waiting for %q", a, want)
		}
		return a == want
	})
}

// assertInDoubt fails the test unless the event is let through once more, as a
// possible repeat, and is a duplicate only then.
func (x *exiting) assertInDoubt(t *testing.T) {
	t.Helper()
	x.g.Start("")
	x.expect(t, "200 possible-repeat HTTP/1.1", "503 in-flight HTTP/1.1")
	x.expect(t, "200 duplicate HTTP/1.1")
	if words := x.u.Words(x.event.Event); len(words) != 2 {
		t.Errorf("the event reached the upstream as %q", words)
	}
}

func (x *exiting) awaitEnd(t *testing.T) {
	t.Helper()
	if c, ok := x.rt.(io.Closer); ok {
		c.Close() // Caddy waits for HTTP/3's connections to end
	}
	harness.Eventually(t, "the gateway has ended", func() bool { return !x.g.Running() })
}

// inEveryProtocol runs a test in each protocol, with a sender that waits and
// with one that has gone.
func inEveryProtocol(t *testing.T, test func(t *testing.T, protocol string, gone bool)) {
	t.Parallel()
	for protocol := range transports {
		for _, gone := range []bool{false, true} {
			t.Run(protocol+map[bool]string{false: ", sender waits", true: ", sender gone"}[gone], func(t *testing.T) {
				t.Parallel()
				test(t, protocol, gone)
			})
		}
	}
}

func TestSecondSignalDoesNotCutTheExitShort(t *testing.T) {
	inEveryProtocol(t, func(t *testing.T, protocol string, gone bool) {
		x := newExiting(t, protocol)
		if gone {
			x.hangUp()
		}
		signal(t, x.g, syscall.SIGTERM)
		x.g.AwaitLog(t, "shutting down apps, then terminating", "SIGTERM")
		signal(t, x.g, syscall.SIGTERM)
		signal(t, x.g, syscall.SIGINT)
		harness.Eventually(t, "the gateway takes no requests any more", func() bool { return !x.g.Listens() })
		signal(t, x.g, syscall.SIGTERM)
		x.latch.Release()
		if !gone {
			if a := <-x.call.answer; !strings.HasPrefix(a, "200 first") {
				t.Errorf("a sender that waited got %q", a)
			}
		}
		x.awaitEnd(t)
		x.g.Start("")
		x.expect(t, "200 duplicate HTTP/1.1")
	})
}

// TestSecondInterruptEndsAtOnce: that is Caddy's own way out. Nothing waits, and
// the event is in doubt.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	inEveryProtocol(t, func(t *testing.T, protocol string, gone bool) {
		x := newExiting(t, protocol)
		if gone {
			x.hangUp()
		}
		signal(t, x.g, syscall.SIGINT)
		x.g.AwaitLog(t, "shutting down", "SIGINT")
		signal(t, x.g, syscall.SIGINT)
		harness.Eventually(t, "the gateway has ended", func() bool { return !x.g.Running() })
		x.call.hangUp()
		if !gone {
			if a := <-x.call.answer; strings.HasPrefix(a, "2") {
				t.Errorf("the sender got %q", a)
			}
		}
		x.latch.Release()
		x.assertInDoubt(t)
	})
}

func TestExitEndsWithTheGracePeriod(t *testing.T) {
	inEveryProtocol(t, func(t *testing.T, protocol string, gone bool) {
		r := harness.StartRedis(t)
		x := newExiting(t, protocol, harness.WithGlobal("grace_period 1s"), harness.WithRedis(r.Addr))
		if gone {
			x.hangUp()
		}
		x.g.Terminate() // it ends though the upstream is still at work
		x.call.hangUp()
		if !gone {
			if a := <-x.call.answer; strings.HasPrefix(a, "2") {
				t.Errorf("the sender got %q", a)
			}
		}
		x.latch.Release()
		x.assertInDoubt(t)
	})
}
