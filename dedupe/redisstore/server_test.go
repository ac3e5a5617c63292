package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// patience is how long a test waits for what must come. It measures nothing.
const patience = 20 * time.Second

// advance lets d pass for every key of a server.
func advance(server *harness.Redis, d time.Duration) {
	server.Do("eval", `
		for _, k in ipairs(redis.call('KEYS', '*')) do
			local left = redis.call('PTTL', k) - ARGV[1]
			if left <= 0 then redis.call('DEL', k) else redis.call('PEXPIRE', k, left) end
		end
		return 1`, 0, d.Milliseconds())
}

// eventually waits until try succeeds.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// open makes a store that is closed with the test. It is patient unless the
// options say otherwise: a busy machine shall not fail a test.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openAt(t testing.TB, addr string) *Store {
	t.Helper()
	return open(t, Options{Addresses: []string{addr}})
}

func hold(token string) dedupe.Hold {
	return dedupe.Hold{Token: token, Lease: 20 * time.Second, TTL: 2 * time.Hour}
}

// claim claims and fails the test on an error.
func claim(t testing.TB, s *Store, key, token string) dedupe.Record {
	t.Helper()
	r, err := s.Claim(context.Background(), key, hold(token), true)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// operations are all steps of a store on one event, by the owner "own".
func operations(s *Store, key string) map[string]func() (any, error) {
	ctx := context.Background()
	return map[string]func() (any, error){
		"claim":    func() (any, error) { return s.Claim(ctx, key, hold("own"), true) },
		"renew":    func() (any, error) { return s.Renew(ctx, key, hold("own")) },
		"complete": func() (any, error) { return nil, s.Complete(ctx, key, dedupe.Done{Mark: 1, TTL: time.Hour}) },
		"release":  func() (any, error) { return nil, s.Release(ctx, key, hold("own")) },
		"doubt":    func() (any, error) { return nil, s.Doubt(ctx, key, hold("own")) },
		"lookup":   func() (any, error) { return s.Lookup(ctx, key) },
		"bind":     func() (any, error) { return s.Bind(ctx, key, "own", time.Hour) },
		"ping":     func() (any, error) { return nil, s.Ping(ctx) },
	}
}
