package tests

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestReloadDuringADeliveryKeepsTheClaim(t *testing.T) {
	t.Parallel()
	for store, use := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u), use(t))
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(200)))

			first := g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			for i := range 3 {
				g.Reload(proxied(u, fmt.Sprintf("lease %dm", i+1)))
				g.Expect(t, d, "503 in-flight")
			}
			latch.Release()
			if a := first.Answer(); a.String() != "200 first" {
				t.Fatalf("the delivery got %q", a)
			}
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestReloadWithoutTheModuleAndBackKeepsTheClaim(t *testing.T) {
	t.Parallel()
	for store, use := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u), use(t))
			s := harness.NewSender(t, "paymos")
			stays, leaves := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(stays.Event, harness.After(latch, harness.Status(200)))
			u.On(leaves.Event, harness.After(latch, harness.Status(200)))

			first := g.Begin(t, harness.HTTP1, stays)
			u.Await(t, stays.Event, 1)
			gone := g.Begin(t, harness.HTTP2, leaves)
			u.Await(t, leaves.Event, 1)
			gone.HangUp()
			g.Reload("respond nothing 503")
			g.Expect(t, stays, "503")
			g.Reload(proxied(u))
			g.Expect(t, stays, "503 in-flight")
			latch.Release()
			if a := first.Answer(); a.String() != "200 first" {
				t.Fatalf("the delivery got %q", a)
			}
			g.RetryUntil(t, leaves, "200 duplicate", "503 in-flight")
			g.Expect(t, stays, "200 duplicate")
			assertReached(t, u, stays.Event, "first")
			assertReached(t, u, leaves.Event, "first")
		})
	}
}

func TestDeliveryThatOutlivesTheModuleIsWritten(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"file", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, proxied(u), stores[store](t))
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(d.Event, harness.After(latch, harness.Status(200)))
			first := g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			g.Reload("respond nothing 503")
			latch.Release()
			if a := first.Answer(); a.String() != "200 first" {
				t.Fatalf("the delivery got %q", a)
			}
			// The store was closed with that delivery, and is opened again.
			g.Reload(proxied(u))
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestManyReloadsLeakNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	generation := 0
	cycle := func() {
		generation++
		// Caddy keeps idle connections to upstreams over reloads, for two minutes.
		g.Reload(proxied(u, fmt.Sprintf("lease %ds", 100+generation)) + " {\ntransport http {\nkeepalive off\n}\n}")
		d := s.Event(harness.Unique("evt"))
		g.Expect(t, d, "200 first")
		g.Expect(t, d, "200 duplicate")
	}
	for range 3 {
		cycle()
	}
	goroutines, connections := countGoroutines(g), r.Connections()
	const reloads = 25
	for range reloads {
		cycle()
	}
	harness.Eventually(t, "as many goroutines run as before", func() bool {
		return countGoroutines(g) < goroutines+reloads
	})
	harness.Eventually(t, "as many connections to Redis are open as before", func() bool {
		return r.Connections() < connections+reloads
	})
	g.Reload("respond nothing 503")
	harness.Eventually(t, "no connection to Redis is left without the module", func() bool { return r.Connections() == 0 })
}

var goroutineTotal = regexp.MustCompile(`goroutine profile: total (\d+)`)

func countGoroutines(g *harness.Gateway) int {
	m := goroutineTotal.FindStringSubmatch(g.Admin("/debug/pprof/goroutine?debug=1"))
	n, _ := strconv.Atoi(m[1])
	return n
}

func TestRefusedReloadChangesNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	first := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	for range 3 {
		if g.TryReload(proxied(u, "secret {env.SURELY_NOT_SET}")) == "" {
			t.Fatal("a route without a secret was loaded")
		}
	}
	g.Expect(t, d, "503 in-flight")
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the delivery got %q", a)
	}
	g.Expect(t, d, "200 duplicate")
}

func TestCountersSurviveReloads(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	s := harness.NewSender(t, "paymos")
	for i := range 3 {
		g.Expect(t, s.Event(harness.Unique("evt")), "200 first")
		g.Reload(proxied(u, fmt.Sprintf("lease %dm", i+1)))
	}
	if n := g.Metric("deliveries_total", `result="first"`); n != 3 {
		t.Fatalf("after three deliveries with reloads between them, the counter says %v", n)
	}
}

func TestReloadBringsANewRedisPassword(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	r.Do("ACL", "SETUSER", "gateway", "on", ">old", "~*", "+@all")
	store := func(password string) harness.Option {
		return harness.WithRedis(r.Addr, "username gateway", "password {env."+password+"}")
	}
	g := harness.StartGateway(t, proxied(u), store("OLD"), harness.WithEnv("OLD=old", "NEW=new"))
	s := harness.NewSender(t, "paymos")
	before, after := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
	g.Expect(t, before, "200 first")
	r.Do("ACL", "SETUSER", "gateway", "resetpass", ">new")
	if _, err := r.Client.Do(context.Background(), "CLIENT", "KILL", "USER", "gateway").Result(); err != nil {
		t.Fatal(err)
	}
	g.Expect(t, after, "503")
	g.Configure(store("NEW"))
	g.Reload(proxied(u))
	g.RetryUntil(t, after, "200 first|200 retry", "503", "503 in-flight")
	g.Expect(t, before, "200 duplicate")
}

// TestReloadThatFailsChangesNothing: Caddy keeps the configuration before, and so
// does the store that both name.
func TestReloadThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t, "--requirepass", "right")
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr, "password right"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := harness.NewSender(t, "paymos")
	for i := range 8 { // Caddy starts its apps in random order
		g.Configure(harness.WithRedis(r.Addr, fmt.Sprintf("password wrong-%d", i)))
		if g.TryReload(proxied(u)+"\n}\nhttp://"+taken.Addr().String()+" {\nrespond taken") == "" {
			t.Fatal("a reload onto an address in use was not refused")
		}
		// Caddy's server of the refused configuration listens for a moment. It may close
		// a connection that it has just accepted; the sender comes again.
		d := s.Event(harness.Unique("evt"))
		harness.Eventually(t, "the sender gets an answer", func() bool {
			a := g.Send(t, d)
			if a.Err == nil && a.String() != "200 first" {
				t.Errorf("event %s: the sender got %q", d.Event, a)
			}
			return a.Err == nil
		})
	}
	if n := g.Metric("store_up"); n != 1 {
		t.Errorf("store_up is %v", n)
	}
}
