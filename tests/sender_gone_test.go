package tests

import (
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestDeliveryGoesOnWhenItsSenderHasGone(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	for _, p := range harness.Protocols {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(200)))
			call := g.Begin(t, p, d)
			u.Await(t, d.Event, 1)
			call.HangUp()
			g.Expect(t, d, "503 in-flight")
			latch.Release()
			g.RetryUntil(t, d, "200 duplicate", "503 in-flight")
			assertReached(t, u, d.Event, "first")
			harness.Eventually(t, "the first delivery is in the log", func() bool { return len(delivered(g, d.Event, "first")) == 1 })
			e := delivered(g, d.Event, "first")[0]
			if e["sender_gone"] != true || e.Text("outcome") != "accepted" {
				t.Errorf("the log says %v", e)
			}
		})
	}
}

func TestFailureAfterItsSenderHasGoneIsRetriedAtOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "lease 1h"))
	for _, p := range harness.Protocols {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(500)), harness.Status(200))
			call := g.Begin(t, p, d)
			u.Await(t, d.Event, 1)
			call.HangUp()
			latch.Release()
			// The lease of an hour is not waited for.
			g.RetryUntil(t, d, "200 retry", "503 in-flight")
			assertReached(t, u, d.Event, "first", "retry")
		})
	}
}

func TestSenderThatGivesUpThreeTimesIsServedOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "wait 1m"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	for range 3 { // the first is in the upstream, the others wait for it
		call := g.Begin(t, harness.HTTP1, d)
		u.Await(t, d.Event, 1)
		call.HangUp()
	}
	last := g.Begin(t, harness.HTTP1, d)
	latch.Release()
	if a := last.Answer(); a.String() != "200 duplicate" {
		t.Fatalf("the last attempt got %q", a)
	}
	assertReached(t, u, d.Event, "first")
}

// TestSenderThatHangsUpWhileTheOutcomeIsWritten changes nothing about that.
func TestSenderThatHangsUpWhileTheOutcomeIsWritten(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	p := harness.StartRedisProxy(t, r.Addr)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(p.Addr, "timeout 30s"))
	for _, proto := range harness.Protocols {
		for status, want := range map[int]string{200: "200 duplicate", 500: "200 retry"} {
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			u.On(d.Event, harness.Status(status), harness.Status(200))
			claimed := false
			writing, goOn := harness.NewLatch(), make(chan struct{})
			p.Decide(func(commands []string) harness.Fate {
				if strings.Contains(strings.Join(commands, "\n"), strings.ToLower(d.Event)) {
					if claimed {
						writing.Release()
						<-goOn
					}
					claimed = true
				}
				return harness.Pass
			})
			call := g.Begin(t, proto, d)
			harness.Eventually(t, "the outcome is on its way", writing.Released)
			call.HangUp()
			close(goOn)
			g.RetryUntil(t, d, want, "503 in-flight")
			if words := u.Words(d.Event); words[0] != "first" || len(words) != 1+status/500 {
				t.Errorf("%s, %d: the upstream got %q", proto, status, words)
			}
		}
	}
}

func TestLongAnswerToAGoneSenderIsTakenToItsEnd(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	for _, p := range harness.Protocols {
		d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
		latch, end := harness.NewLatch(), harness.NewLatch()
		u.On(d.Event, harness.After(latch, func(u *harness.Upstream, w http.ResponseWriter, r *http.Request) {
			harness.Huge(200, 8<<20, true)(u, w, r)
			end.Release()
		}))
		call := g.Begin(t, p, d)
		u.Await(t, d.Event, 1)
		call.HangUp()
		latch.Release()
		harness.Eventually(t, "the upstream could write its whole answer", end.Released)
		g.RetryUntil(t, d, "200 duplicate", "503 in-flight")
		assertReached(t, u, d.Event, "first")
	}
}

// delivered are the log lines of an event's deliveries with this result.
func delivered(g *harness.Gateway, event, result string) (entries []harness.Entry) {
	for _, e := range g.Deliveries(event) {
		if e.Text("result") == result {
			entries = append(entries, e)
		}
	}
	return entries
}
