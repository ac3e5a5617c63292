package harness

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis is a real redis-server.
type Redis struct {
	// Addr is host:port.
	Addr string
	// Client talks to it past the gateway.
	Client *redis.Client

	t       testing.TB
	dir     string
	command []string // the arguments of redis-server
	process *process
}

// StartRedis starts a server that keeps nothing on disk. args are added to its
// command line.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	r := NewRedis(t, args...)
	r.Start()
	return r
}

// NewRedis prepares a server that is not started yet.
func NewRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	r := newRedis(t, &redis.Options{})
	r.command = append([]string{"--bind", "127.0.0.1", "--port", r.Port(), "--dir", r.dir, "--save", "", "--appendonly", "no"}, args...)
	return r
}

func newRedis(t testing.TB, o *redis.Options) *Redis {
	t.Helper()
	r := &Redis{Addr: "127.0.0.1:" + FreePort(t), t: t, dir: t.TempDir()}
	o.Addr, o.MaxRetries = r.Addr, -1
	r.Client = redis.NewClient(o)
	t.Cleanup(func() {
		r.Client.Close()
		if r.process != nil {
			r.process.kill()
		}
	})
	return r
}

// Start starts the server, again after [Redis.Kill], and waits until it answers.
func (r *Redis) Start() {
	r.t.Helper()
	r.Launch()
	Eventually(r.t, "redis-server answers", func() bool {
		err := r.Client.Ping(context.Background()).Err()
		return err == nil || strings.Contains(err.Error(), "NOAUTH")
	})
}

// Launch is Start without the wait, for a server that has much to load. args are
// added to its command line, this time.
func (r *Redis) Launch(args ...string) {
	r.t.Helper()
	r.process = startProcess(r.t, r.dir, nil, "redis-server", append(r.command[:len(r.command):len(r.command)], args...)...)
}

// As runs commands with a password, on one connection of their own.
func (r *Redis) As(password string, commands ...[]any) {
	r.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr, Password: password, MaxRetries: -1})
	defer c.Close()
	for _, args := range commands {
		if err := c.Do(context.Background(), args...).Err(); err != nil {
			r.t.Fatalf("%v: %v", args, err)
		}
	}
}

// Dir is where it keeps its data.
func (r *Redis) Dir() string { return r.dir }

// Port is the port of Addr.
func (r *Redis) Port() string {
	_, port, _ := strings.Cut(r.Addr, ":")
	return port
}

// Kill ends the server at once. What it had is lost, unless it keeps an
// append-only file.
func (r *Redis) Kill() { r.process.kill() }

// Freeze stops the server without closing its connections.
func (r *Redis) Freeze() { r.process.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (r *Redis) Thaw() { r.process.signal(syscall.SIGCONT) }

// Do runs a command.
func (r *Redis) Do(args ...any) any {
	r.t.Helper()
	v, err := r.Client.Do(context.Background(), args...).Result()
	if err != nil {
		r.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// probe is in the name of the keys that the gateway tries a server with.
const probe = "!probe"

// Keys are all keys of events and bindings, sorted.
func (r *Redis) Keys() []string {
	r.t.Helper()
	keys, err := r.Client.Keys(context.Background(), "*").Result()
	if err != nil {
		r.t.Fatal(err)
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.Contains(k, probe) })
	slices.Sort(keys)
	return keys
}

// Connections counts the clients that are connected, without the test's own.
func (r *Redis) Connections() int {
	r.t.Helper()
	list, err := r.Client.ClientList(context.Background()).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	own := 0
	for line := range strings.Lines(list) {
		if strings.Contains(line, "cmd=client") {
			own++
		}
	}
	return strings.Count(list, "\n") - own
}
