package tests

import (
	"context"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// durable makes a Redis server keep what it has acknowledged over a kill.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// isDone reports whether Redis holds the event as finished: a bare number.
func isDone(r *harness.Redis, event string) bool {
	for _, key := range r.Keys() {
		if strings.Contains(key, event) {
			value, err := r.Client.Get(context.Background(), key).Result()
			return err == nil && !strings.Contains(value, ":")
		}
	}
	return false
}

func TestGatewayStartsWithoutRedisAndRecovers(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.NewRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	for range 3 {
		if a := g.Expect(t, d, "503"); a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After while the store is away")
		}
	}
	assertReached(t, u, d.Event)
	r.Start()
	g.RetryUntil(t, d, "200 first", "503")
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first")
	if n := g.Metric("rejections_total", `reason="store"`); n < 3 {
		t.Errorf("%v deliveries are counted as refused for the store", n)
	}
}

func TestNothingPassesWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t, durable...)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	done, fresh := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	g.Expect(t, done, "200 first")
	r.Kill()
	for range 3 {
		g.Expect(t, done, "503")
		g.Expect(t, fresh, "503")
	}
	r.Start()
	g.RetryUntil(t, done, "200 duplicate", "503")
	g.RetryUntil(t, fresh, "200 first|200 retry", "503", "503 in-flight")
	g.Expect(t, fresh, "200 duplicate")
	if u.Total() != 2 {
		t.Fatalf("two events made %d requests", u.Total())
	}
}

func TestSuccessIsAnsweredThoughRedisDiedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"comes back with its data": durable, "comes back empty": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			r := harness.StartRedis(t, args...)
			g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(201)))
			call := g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			r.Kill()
			latch.Release()
			if a := call.Answer(); a.String() != "201 first" {
				t.Fatalf("the sender got %q", a)
			}
			// This process knows, though the store does not.
			g.Expect(t, d, "200 duplicate")
			if n := g.Metric("settlements_waiting"); n != 1 {
				t.Errorf("%v outcomes are counted as waiting for the store", n)
			}
			r.Start()
			harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, d.Event) })
			harness.Eventually(t, "no outcome waits", func() bool { return g.Metric("settlements_waiting") == 0 })
			other := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
			other.Expect(t, d, "200 duplicate")
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestFailureIsWrittenWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t, durable...)
	g := harness.StartGateway(t, proxied(u, "lease 1h"), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(500)), harness.Status(200))
	call := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	r.Kill()
	latch.Release()
	if a := call.Answer(); a.String() != "500 first" {
		t.Fatalf("the sender got %q", a)
	}
	g.Expect(t, d, "503")
	r.Start()
	// The lease of an hour is not waited for.
	g.RetryUntil(t, d, "200 retry", "503", "503 in-flight")
	assertReached(t, u, d.Event, "first", "retry")
}

func TestFrozenRedisIsNotWaitedForForever(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr, "timeout 300ms"))
	s := harness.NewSender(t, "paymos")
	done, fresh := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	g.RetryUntil(t, done, "200 first|200 retry", "503", "503 in-flight")
	r.Freeze()
	g.Expect(t, done, "503")
	g.Expect(t, fresh, "503")
	assertReached(t, u, fresh.Event)
	r.Thaw()
	g.RetryUntil(t, done, "200 duplicate", "503")
	// The question may have reached Redis after all, and is taken back.
	g.RetryUntil(t, fresh, "200 first|200 retry", "503", "503 in-flight")
	g.RetryUntil(t, fresh, "200 duplicate", "503")
	if n := len(u.Requests(fresh.Event)); n != 1 {
		t.Fatalf("the event made %d requests", n)
	}
}

func TestDeliveriesPassUncheckedWhereTheRouteWantsIt(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.NewRedis(t)
	g := harness.StartGateway(t, proxied(u, "on_store_error forward")+"\n"+route("/ids", "stableops", "on_store_error forward"), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	fails, works := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	guarded := harness.NewSender(t, "stableops").Event(harness.Unique("evt")).To("/ids")
	u.On(fails.Event, harness.Status(500))
	g.Expect(t, fails, "500 possible-repeat")
	g.Expect(t, fails, "500 possible-repeat")
	assertReached(t, u, fails.Event, "possible-repeat", "possible-repeat")
	g.Expect(t, works, "200 possible-repeat")
	g.Expect(t, guarded, "200 possible-repeat")
	// What was accepted waits for the store, and counts here at once.
	g.Expect(t, works, "200 duplicate")
	forged := works.With("X-Webhook-Signature", "t=1,v1=00")
	g.Expect(t, forged, "401")
	r.Start()
	harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, works.Event) })
	assertReached(t, u, works.Event, "possible-repeat")
}

func TestEmptiedRedisCostsARepeatAndNoEvent(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	done, busy := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(busy.Event, harness.After(latch, harness.Status(200)))
	g.Expect(t, done, "200 first")
	call := g.Begin(t, harness.HTTP1, busy)
	u.Await(t, busy.Event, 1)
	r.Do("FLUSHALL")
	g.Expect(t, done, "200 first")
	latch.Release()
	if a := call.Answer(); a.String() != "200 first" {
		t.Fatalf("the sender got %q", a)
	}
	g.Expect(t, busy, "200 duplicate")
	g.Expect(t, done, "200 duplicate")
}
