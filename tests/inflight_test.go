package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestCopyOfAnEventInFlightIsNeverAcknowledged(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(500)), harness.Status(200))

	first := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	copied := g.Expect(t, d, "503 in-flight")
	if copied.Header.Get("Retry-After") == "" {
		t.Error("a copy of an event in flight is not told when to come again")
	}
	latch.Release()
	if a := first.Answer(); a.String() != "500 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	g.Expect(t, d, "200 retry")
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first", "retry")
}

func TestWaitingCopyIsADuplicateOnceTheFirstIsDone(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "wait 1m"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))

	first := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	copies := []*harness.Call{g.Begin(t, harness.HTTP1, d), g.Begin(t, harness.HTTP2, d)}
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	for _, c := range copies {
		if a := c.Answer(); a.String() != "200 duplicate" {
			t.Fatalf("a copy that waited got %q", a)
		}
	}
	assertReached(t, u, d.Event, "first")
}

func TestWaitingCopyIsNotAcknowledgedWhenTheFirstFails(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "wait 1m", "lease 2s"))
	for name, failure := range map[string]harness.Behaviour{
		"refused": harness.Status(500), "reset": harness.Reset(), "cut off": harness.CutOffLength(200), "redirect": harness.Redirect(302, "/elsewhere"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, failure), harness.Status(200))
			first := g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			copied := g.Begin(t, harness.HTTP1, d)
			latch.Release()
			if a := first.Answer(); a.Status < 500 {
				t.Fatalf("the first delivery got %q", a)
			}
			// A copy that came too late to wait is a delivery in its own right.
			if a := copied.Answer(); a.String() != "503 in-flight" && a.String() != "200 retry" {
				t.Fatalf("the copy got %q", a)
			}
		})
	}
}

func TestFiftyCopiesOverTwoGatewaysReachTheUpstreamOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	gateways := []*harness.Gateway{
		harness.StartGateway(t, proxied(u, "wait 2s"), harness.WithRedis(r.Addr, "timeout 20s")),
		harness.StartGateway(t, proxied(u, "wait 2s"), harness.WithRedis(r.Addr, "timeout 20s")),
	}
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))

	var calls []*harness.Call
	for i := range 50 {
		calls = append(calls, gateways[i%2].Begin(t, harness.Protocols[i/2%2], d))
	}
	u.Await(t, d.Event, 1)
	latch.Release()
	answers := make(map[string]int)
	for _, c := range calls {
		answers[c.Answer().String()]++
	}
	if answers["200 first"] != 1 || answers["200 first"]+answers["200 duplicate"]+answers["503 in-flight"] != 50 {
		t.Fatalf("the senders got %v", answers)
	}
	for _, g := range gateways {
		g.Expect(t, d, "200 duplicate")
	}
	assertReached(t, u, d.Event, "first")
}

func TestLeaseIsRenewedWhileTheUpstreamWorks(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	line := fmt.Sprintf("lease %v", lease)
	busy := harness.StartGateway(t, proxied(u, line), harness.WithRedis(r.Addr))
	other := harness.StartGateway(t, proxied(u, line), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))

	first := busy.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(lease / 20) {
		other.Expect(t, d, "503 in-flight")
	}
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	other.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first")
}

func TestCopyLearnsOfAnEndInAnotherGateway(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	busy := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	other := harness.StartGateway(t, proxied(u, "wait 1m"), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))

	first := busy.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	copied := other.Begin(t, harness.HTTP1, d)
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	if a := copied.Answer(); a.String() != "200 duplicate" {
		t.Fatalf("the copy at the other gateway got %q", a)
	}
	assertReached(t, u, d.Event, "first")
}

func TestDeliveriesBeyondMaxInFlightComeAgain(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "max_in_flight 1", "wait 1m"))
	s := harness.NewSender(t, "paymos")
	busy, late := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(busy.Event, harness.After(latch, harness.Status(200)))

	first := g.Begin(t, harness.HTTP1, busy)
	u.Await(t, busy.Event, 1)
	if a := g.Expect(t, late, "503"); a.Header.Get("Retry-After") == "" {
		t.Error("a delivery that found no place is not told when to come again")
	}
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the delivery in flight got %q", a)
	}
	g.RetryUntil(t, late, "200 first", "503")
	assertReached(t, u, late.Event, "first")
}

func TestCopiesThatWaitTakeNoPlaceInTheUpstream(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "max_in_flight 2", "wait 1m"))
	s := harness.NewSender(t, "paymos")
	busy, other := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(busy.Event, harness.After(latch, harness.Status(200)))

	first := g.Begin(t, harness.HTTP1, busy)
	u.Await(t, busy.Event, 1)
	var copies []*harness.Call
	for range 3 {
		copies = append(copies, g.Begin(t, harness.HTTP1, busy))
	}
	// A place may be taken for the moment that the copies need to begin to wait.
	g.RetryUntil(t, other, "200 first", "503")
	latch.Release()
	for _, c := range append(copies, first) {
		if a := c.Answer(); a.Status != 200 && a.String() != "503" {
			t.Fatalf("a delivery got %q", a)
		}
	}
	assertReached(t, u, busy.Event, "first")
}
