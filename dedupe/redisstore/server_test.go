package redisstore

import (
	"context"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// server is a real redis-server of the test's own.
type server struct {
	t    testing.TB
	port string
	dir  string
	args []string
	cmd  *exec.Cmd
	// admin talks to it past the store under test.
	admin *redis.Client
}

// patience is how long a test waits for what must come. It measures nothing.
const patience = 20 * time.Second

// freePort returns a port that nobody listens on, below those that systems give
// to connections: one of them might take it before the server does.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(10000 + rand.IntN(22000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// startServer starts a redis-server that keeps nothing on disk. args are added
// to its command line.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), dir: t.TempDir(), args: args}
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr()})
	t.Cleanup(func() { s.admin.Close(); s.kill() })
	s.start()
	return s
}

func (s *server) addr() string { return "127.0.0.1:" + s.port }

// start runs the server, again after kill, and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{"--save", "", "--appendonly", "no", "--dir", s.dir, "--bind", "127.0.0.1", "--port", s.port}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("these tests need redis-server: %v", err)
	}
	eventually(s.t, "the server answers", func() error { return answers(s.admin) })
}

// answers is nil if the server says anything, be it that it wants a password.
func answers(c *redis.Client) error {
	err := c.Ping(context.Background()).Err()
	if redis.IsAuthError(err) {
		return nil
	}
	return err
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// do runs a command past the store.
func (s *server) do(args ...any) any {
	s.t.Helper()
	v, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// advance lets d pass for every key.
func (s *server) advance(d time.Duration) {
	s.t.Helper()
	s.do("eval", `
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
