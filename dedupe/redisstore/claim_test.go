package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// trips counts round trips, and the SETs in them. Handshakes count for nothing.
type trips struct{ rounds, sets atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.rounds.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		counts := int64(0)
		for _, cmd := range cmds {
			switch cmd.Name() {
			case "set":
				c.sets.Add(1)
				fallthrough
			case "get":
				counts = 1
			}
		}
		c.rounds.Add(counts)
		return next(ctx, cmds)
	}
}

// count adds a counter to the client that s uses now.
func count(t *testing.T, s *Store) *trips {
	t.Helper()
	c, err := s.acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	counter := &trips{}
	c.client.AddHook(counter)
	return counter
}

func TestCommonStepsTakeOneRoundTrip(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	ctx := context.Background()
	claim(t, s, "warm:up", "x")
	if _, err := s.Renew(ctx, "warm:up", hold("x")); err != nil {
		t.Fatal(err)
	}
	s.Doubt(ctx, "warm:up", hold("x"))
	s.Release(ctx, "warm:up", hold("x"))
	claim(t, s, "warm:up", "x")
	counter := count(t, s)
	for _, step := range []struct {
		name  string
		trips int64
		do    func() error
	}{
		{"claim of a new event", 1, func() error { claim(t, s, "a:1", "own"); return nil }},
		{"claim of an event in flight", 1, func() error { claim(t, s, "a:1", "other"); return nil }},
		{"claim repeated", 1, func() error { claim(t, s, "a:1", "own"); return nil }},
		{"lookup", 1, func() error { _, err := s.Lookup(ctx, "a:1"); return err }},
		{"renew", 1, func() error { _, err := s.Renew(ctx, "a:1", hold("own")); return err }},
		{"doubt", 1, func() error { return s.Doubt(ctx, "a:1", hold("own")) }},
		{"release", 1, func() error { return s.Release(ctx, "a:1", hold("own")) }},
		{"claim after a failure", 2, func() error { claim(t, s, "a:1", "own"); return nil }},
		{"complete", 1, func() error { return s.Complete(ctx, "a:1", dedupe.Done{TTL: time.Hour}) }},
		{"claim of a done event", 1, func() error { claim(t, s, "a:1", "other"); return nil }},
		{"bind", 1, func() error { _, err := s.Bind(ctx, "a:1", "v", time.Hour); return err }},
		{"bind again", 1, func() error { _, err := s.Bind(ctx, "a:1", "w", time.Hour); return err }},
	} {
		before := counter.rounds.Load()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if n := counter.rounds.Load() - before; n != step.trips {
			t.Errorf("%s: %d round trips, want %d", step.name, n, step.trips)
		}
	}
}

func TestConcurrentClaimsShareRoundTrips(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	counter := count(t, s)
	const callers, rounds = 100, 20
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range rounds {
				token := fmt.Sprintf("t%d-%d", i, j)
				if r := claim(t, s, "share:"+token, token); !r.OwnedBy(token) {
					t.Errorf("a new event: %+v", r)
				}
			}
		})
	}
	all.Wait()
	if n := counter.sets.Load(); n != callers*rounds {
		t.Errorf("%d SETs for %d claims", n, callers*rounds)
	}
	if n := counter.rounds.Load(); n > callers*rounds/2 {
		t.Errorf("%d round trips for %d claims: they did not share", n, callers*rounds)
	}
}

// A copy of an event whose lease is over is taken over by one caller only, who
// may have seen it before the other took it.
func TestTakeoverJudgesTheRecordAsItIsInTheServer(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	claim(t, s, "a:1", "dead")
	advance(server, 30*time.Second)
	c, err := s.acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	if r := claim(t, s, "a:1", "first"); !r.OwnedBy("first") || r.Attempt != 2 || !r.Doubted {
		t.Fatalf("takeover: %+v", r)
	}
	r, err := c.runScript(context.Background(), claimScript, "a:1", hold("second"), "1")
	if err != nil || r.OwnedBy("second") {
		t.Errorf("a second takeover, decided before the first: %+v, %v", r, err)
	}
	for name, other := range map[string]dedupe.Hold{
		"a shorter lease":       {Lease: time.Second, TTL: 2 * time.Hour},
		"a longer time to live": {Lease: 20 * time.Second, TTL: 9 * time.Hour},
	} {
		other.Token = "other"
		advance(server, 5*time.Second)
		r, err = c.runScript(context.Background(), claimScript, "a:1", other, "1")
		if err != nil || r.OwnedBy("other") {
			t.Errorf("a lease that runs is taken over by one with %s: %+v, %v", name, r, err)
		}
	}
	advance(server, 30*time.Second)
	// Somebody saw it failed, before it was claimed again and lapsed.
	r, err = c.runScript(context.Background(), claimScript, "a:1", hold("third"), "0")
	if err != nil || r.OwnedBy("third") {
		t.Errorf("a retry took over a lapsed claim against its will: %+v, %v", r, err)
	}
}

func TestRepeatedClaimNeverEndsWithASpentLease(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	for _, late := range []time.Duration{15 * time.Second, 25 * time.Second} {
		claim(t, s, "a:1", "own")
		advance(server, late)
		if r := claim(t, s, "a:1", "own"); !r.OwnedBy("own") || r.Attempt != 1 || r.LeaseLeft < hold("own").Lease/2 {
			t.Errorf("repeated %v later: %+v", late, r)
		}
	}
}

func TestKeysAreReadableAndOfTwoKinds(t *testing.T) {
	server := harness.StartRedis(t)
	s := open(t, Options{Addresses: []string{server.Addr}, KeyPrefix: "shop"})
	claim(t, s, dedupe.Key("orders", "evt_1", ""), "a")
	if _, err := s.Bind(context.Background(), "orders:x", "v", time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := server.Do("exists", "shop:orders:evt_1", "shop!orders:x"); n != int64(2) {
		t.Errorf("the keys are %v", server.Do("keys", "*"))
	}
}

func TestForeignValueIsCorruptForEveryStep(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	for name, make := range map[string]func(key string){
		"text":         func(key string) { server.Do("set", key, "hello", "px", 60_000) },
		"empty":        func(key string) { server.Do("set", key, "", "px", 60_000) },
		"big number":   func(key string) { server.Do("set", key, "10000", "px", 60_000) },
		"never ending": func(key string) { server.Do("set", key, "I:own:1:0:1000:2000") },
		"a list":       func(key string) { server.Do("rpush", key, "1") },
	} {
		key := dedupe.Key("corrupt", strings.ReplaceAll(name, " ", "_"), "")
		make("webhook_dedupe:" + key)
		before := server.Do("dump", "webhook_dedupe:"+key)
		for step, do := range operations(s, key) {
			if step == "complete" || step == "bind" || step == "ping" {
				continue
			}
			if got, err := do(); !errors.Is(err, dedupe.ErrCorrupt) {
				t.Errorf("%s: %s returned %+v, %v", name, step, got, err)
			}
		}
		if server.Do("dump", "webhook_dedupe:"+key) != before {
			t.Errorf("%s: the value was changed", name)
		}
	}
}

func TestCallerWhoIsGoneSendsNothingAndCancelsNothing(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Claim(ctx, "a:1", hold("own"), true); !errors.Is(err, context.Canceled) {
		t.Errorf("claim with an ended context: %v", err)
	}
	if n := server.Do("dbsize"); n != int64(0) {
		t.Errorf("%v keys were written", n)
	}
	proxy := startProxy(t, server.Addr)
	through := openAt(t, proxy.addr)
	ctx, cancel = context.WithCancel(context.Background())
	lost, _ := once("I:own", sever)
	proxy.decideBy(func(request string) fate {
		if strings.Contains(request, "I:own") {
			cancel() // the sender hangs up while the claim is on its way
		}
		return lost(request)
	})
	if r, err := through.Claim(ctx, "a:1", hold("own"), true); err != nil || !r.OwnedBy("own") {
		t.Errorf("a claim whose sender hung up: %+v, %v", r, err)
	}
}
