package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestUpdateChangesThePasswordWithoutANewStore(t *testing.T) {
	server := harness.StartRedis(t)
	server.Do("config", "set", "requirepass", "old-pw")
	s := open(t, Options{Addresses: []string{server.Addr}, Password: "old-pw"})
	claim(t, s, "a:1", "own")

	server.Client.Options().Password = "old-pw"
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, Password: "old-pw"})
	defer admin.Close()
	ctx := context.Background()
	if err := admin.ConfigSet(ctx, "requirepass", "new-pw").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lookup(ctx, "a:1"); !redis.IsAuthError(err) {
		t.Fatalf("with the old password: %v, want it refused", err)
	}
	if err := s.Update(Options{Addresses: []string{server.Addr}, Password: "new-pw"}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Lookup(ctx, "a:1"); err != nil || !r.OwnedBy("own") {
		t.Errorf("with the new password: %+v, %v", r, err)
	}
}

func TestUpdateToAnotherStoreIsRefused(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	before := s.current.Load()
	for name, o := range map[string]Options{
		"another address": {Addresses: []string{"127.0.0.1:1"}},
		"another user":    {Addresses: []string{server.Addr}, Username: "u"},
		"another db":      {Addresses: []string{server.Addr}, DB: 1},
		"another prefix":  {Addresses: []string{server.Addr}, KeyPrefix: "x"},
		"invalid":         {},
	} {
		if err := s.Update(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if s.current.Load() != before {
		t.Error("a refused update changed the client")
	}
	claim(t, s, "a:1", "own")
}

func TestUpdateWithoutAChangeKeepsTheConnections(t *testing.T) {
	s := openAt(t, "127.0.0.1:1")
	before := s.current.Load()
	if err := s.Update(Options{URL: "redis://127.0.0.1:1", Timeout: patience}); err != nil {
		t.Fatal(err)
	}
	if s.current.Load() != before {
		t.Error("the same options made a new client")
	}
}

func TestOldClientIsClosedAfterItsLastOperation(t *testing.T) {
	server := harness.StartRedis(t)
	for name, leave := range map[string]func(*Store) error{
		"update": func(s *Store) error {
			return s.Update(Options{Addresses: []string{server.Addr}, Timeout: 2 * patience})
		},
		"close": (*Store).Close,
	} {
		s := openAt(t, server.Addr)
		old, err := s.acquire() // an operation under way
		if err != nil {
			t.Fatal(err)
		}
		if err := leave(s); err != nil {
			t.Fatal(err)
		}
		if err := old.client.Ping(context.Background()).Err(); err != nil {
			t.Errorf("%s: closed under a running operation: %v", name, err)
		}
		old.release()
		if err := old.client.Ping(context.Background()).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("%s: not closed after the last operation: %v", name, err)
		}
		if old.acquire() {
			t.Errorf("%s: a closed client was handed out", name)
		}
	}
}

func TestNewDialsNothing(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	if s.current.Load().client != nil {
		t.Error("a client was made before the first operation")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestUpdatesUnderLoadLoseNoOperationAndLeakNoConnection(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				token := fmt.Sprintf("t%d-%d", i, n)
				if r := claim(t, s, "load:"+token, token); !r.OwnedBy(token) {
					t.Errorf("a new event: %+v", r)
				}
			}
		})
	}
	for i := range 50 {
		o := Options{Addresses: []string{server.Addr}, Timeout: patience + time.Duration(i+1)}
		if err := s.Update(o); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all connections are closed", func() error {
		list := server.Do("client", "list").(string)
		if n := strings.Count(list, "\n"); n > 2 { // the admin's own
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
}

func TestGoRedisLogsOnlyWhereItIsTold(t *testing.T) {
	var out lockedBuffer
	quiet()
	bridge{}.Printf(context.Background(), "dropped %d", 1)
	LogTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer LogTo(nil)
	bridge{}.Printf(context.Background(), "kept %d", 2)
	if got := out.String(); !strings.Contains(got, "kept 2") || strings.Contains(got, "dropped") {
		t.Errorf("logged: %q", got)
	}
}

// lockedBuffer is a strings.Builder for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
