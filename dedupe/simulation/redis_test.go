package simulation

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// startRedis starts a redis-server that keeps nothing, on a socket of its own,
// whose path it returns.
func startRedis(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // t.TempDir's are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatalf("the simulation needs redis-server: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: socket})
	defer client.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := client.Ping(context.Background()).Err()
		if err == nil {
			return socket
		}
		if time.Now().After(end) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

// database is one database of a real Redis.
type database struct {
	store dedupe.Store
	admin *redis.Client
}

func openDatabase(t *testing.T, socket string, n int) database {
	t.Helper()
	s, err := redisstore.New(redisstore.Options{Addresses: []string{socket}, DB: n, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(&redis.Options{Addr: socket, DB: n})
	t.Cleanup(func() {
		s.Close()
		admin.Close()
	})
	return database{s, admin}
}

// shift lets a time pass for every key.
var shift = redis.NewScript(`
	for _, k in ipairs(redis.call('KEYS', '*')) do
		local left = redis.call('PTTL', k) - ARGV[1]
		if left <= 0 then redis.call('DEL', k) else redis.call('PEXPIRE', k, left) end
	end
	return 1`)

func (d database) advance(by time.Duration) error {
	return shift.Run(context.Background(), d.admin, nil, by.Milliseconds()).Err()
}

// pace is how much faster time is in Redis than in the history: what really
// passes while a history runs is next to nothing there. A time to live of a week
// is just short of what a time.Duration holds.
const pace = 10_000

// paced is a real Redis whose time is the history's. Before each operation all
// keys are moved by what has passed since the one before.
type paced struct {
	database
	now     func() time.Time
	outside func(func())

	begun   time.Time // really
	passed  time.Duration
	drifted time.Duration
}

// onRedis opens a database, emptied, for one history after the other. outside
// runs what must not run in a bubble, where the time is not real.
func onRedis(d database, outside func(func())) opener {
	return func(now func() time.Time) (dedupe.Store, error) {
		p := &paced{database: d, now: now, outside: outside}
		var err error
		outside(func() {
			p.begun = time.Now()
			err = d.admin.FlushDB(context.Background()).Err()
		})
		return p, err
	}
}

// outside returns a function that has something done by a goroutine which was
// started here.
func outside(t *testing.T) func(func()) {
	calls, done := make(chan func()), make(chan struct{})
	go func() {
		for do := range calls {
			do()
			done <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(calls) })
	return func(do func()) {
		calls <- do
		<-done
	}
}

func (p *paced) drift() time.Duration { return p.drifted }

// do brings the keys to the time of the history and does something to them.
func (p *paced) do(what func() error) (err error) {
	passed := p.now().Sub(epoch) * pace
	p.outside(func() {
		if d := passed - p.passed; d >= time.Millisecond {
			d = d.Truncate(time.Millisecond)
			if err = p.advance(d); err != nil {
				return
			}
			p.passed += d
		}
		err = what()
		p.drifted = time.Since(p.begun) / pace
	})
	return err
}

func fast(h dedupe.Hold) dedupe.Hold {
	h.Lease *= pace
	h.TTL *= pace
	return h
}

func slow(r dedupe.Record) dedupe.Record {
	r.LeaseLeft /= pace
	r.Left /= pace
	return r
}

func (p *paced) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (r dedupe.Record, err error) {
	err = p.do(func() (err error) { r, err = p.store.Claim(ctx, key, fast(h), takeover); return err })
	return slow(r), err
}

func (p *paced) Renew(ctx context.Context, key string, h dedupe.Hold) (ok bool, err error) {
	err = p.do(func() (err error) { ok, err = p.store.Renew(ctx, key, fast(h)); return err })
	return ok, err
}

func (p *paced) Complete(ctx context.Context, key string, d dedupe.Done) error {
	d.TTL *= pace
	return p.do(func() error { return p.store.Complete(ctx, key, d) })
}

func (p *paced) Release(ctx context.Context, key string, h dedupe.Hold) error {
	return p.do(func() error { return p.store.Release(ctx, key, fast(h)) })
}

func (p *paced) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	return p.do(func() error { return p.store.Doubt(ctx, key, fast(h)) })
}

func (p *paced) Lookup(ctx context.Context, key string) (r dedupe.Record, err error) {
	err = p.do(func() (err error) { r, err = p.store.Lookup(ctx, key); return err })
	return slow(r), err
}

func (p *paced) Bind(context.Context, string, string, time.Duration) (string, error) {
	panic("the simulation binds nothing")
}

func (p *paced) forget() error {
	return p.do(func() error { return p.admin.FlushDB(context.Background()).Err() })
}

func (p *paced) Close() error { return nil }
