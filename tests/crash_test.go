package tests

import (
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestCrashInMidFlightIsRetriedAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"file", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u, "lease 8s"), stores[store](t))
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(200)), harness.Status(503), harness.Status(200))
			call := g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			g.Kill()
			if a := call.Answer(); a.Err == nil {
				t.Fatalf("a gateway that was killed answered %q", a)
			}
			latch.Release() // the upstream does its work, and nobody hears of it
			g.Start("")
			g.Expect(t, d, "503 in-flight")
			g.RetryUntil(t, d, "503 possible-repeat", "503 in-flight")
			g.Expect(t, d, "200 possible-repeat")
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first", "possible-repeat", "possible-repeat")
		})
	}
}

func TestCrashInMidFlightIsHeldWhereARepeatIsWorse(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "lease 1s", "on_unknown hold"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	u.On(d.Event, harness.Hang(), harness.Status(200))
	g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	g.Kill()
	g.Start("")
	g.RetryUntil(t, d, "503 held", "503 in-flight")
	g.Expect(t, d, "503 held")
	assertReached(t, u, d.Event, "first")
}

func TestCrashForgetsNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{"file", "file {\nsync always\n}"} {
		u := harness.StartUpstream(t)
		g := harness.StartGateway(t, proxied(u), harness.WithStore(lines))
		s := harness.NewSender(t, "paymos")
		var events []*harness.Delivery
		for range 3 {
			for range 20 {
				d := s.Event(harness.Unique("evt"))
				g.Expect(t, d, "200 first")
				events = append(events, d)
			}
			g.Kill()
			g.Start("")
			for _, d := range events {
				g.Expect(t, d, "200 duplicate")
			}
		}
		if n := u.Total(); n != len(events) {
			t.Fatalf("%d events made %d requests", len(events), n)
		}
	}
}

func TestEveryEventIsAcceptedThroughManyCrashes(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "lease 1s"))
	s := harness.NewSender(t, "paymos")
	latch := harness.NewLatch()
	var events []*harness.Delivery
	for range 4 {
		for range 5 {
			d := s.Event(harness.Unique("evt"))
			u.On(d.Event, harness.After(latch, harness.Status(200)), harness.Status(200))
			events = append(events, d)
			g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
		}
		g.Kill()
		g.Start("")
	}
	latch.Release()
	for _, d := range events {
		g.RetryUntil(t, d, "200 possible-repeat", "503 in-flight")
		g.Expect(t, d, "200 duplicate")
		assertReached(t, u, d.Event, "first", "possible-repeat")
	}
}
