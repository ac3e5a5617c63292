package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// The client resends a SET whose answer was lost, and the second finds the
// first one's key.
func TestOwnerWhoseReplyWasLostIsToldThatItOwns(t *testing.T) {
	server := harness.StartRedis(t)
	for name, f := range map[string]fate{"connection closed": sever, "answer swallowed": swallow} {
		t.Run(name, func(t *testing.T) {
			server.Do("flushall")
			proxy := startProxy(t, server.Addr)
			s := open(t, Options{Addresses: []string{proxy.addr}, Timeout: 2 * time.Second})
			decide, hit := once("I:own:", f)
			proxy.decideBy(decide)
			r := claim(t, s, "a:1", "own")
			if !hit.Load() {
				t.Fatal("the proxy lost nothing")
			}
			if !r.OwnedBy("own") || r.Attempt != 1 || r.Doubted {
				t.Errorf("the first delivery of an event: %+v, want it owned", r)
			}
			if other := claim(t, s, "a:1", "other"); other.OwnedBy("other") {
				t.Errorf("its copy owns it too: %+v", other)
			}
		})
	}
}

func TestEveryStepSurvivesALostReply(t *testing.T) {
	server := harness.StartRedis(t)
	for step, marker := range map[string]string{
		"claim": "set", "renew": "eval", "complete": "set", "release": "eval", "doubt": "eval", "lookup": "pttl", "bind": "set",
	} {
		t.Run(step, func(t *testing.T) {
			server.Do("flushall")
			proxy := startProxy(t, server.Addr)
			s := open(t, Options{Addresses: []string{proxy.addr}, Timeout: 2 * time.Second})
			claim(t, s, "a:1", "own")
			decide, hit := once(marker, sever)
			proxy.decideBy(decide)
			got, err := operations(s, "a:1")[step]()
			if err != nil || !hit.Load() {
				t.Fatalf("got %v, %v (a reply was lost: %v)", got, err, hit.Load())
			}
			switch step {
			case "renew":
				if got != true {
					t.Error("the owner was told that it lost the event")
				}
			case "bind":
				if got != "own" {
					t.Errorf("bound to %v", got)
				}
			}
		})
	}
}

func TestFrozenServerEndsInAnErrorAndIsUsedAgain(t *testing.T) {
	server := harness.StartRedis(t)
	s := open(t, Options{Addresses: []string{server.Addr}, Timeout: 300 * time.Millisecond})
	claim(t, s, "a:1", "own")
	server.Freeze()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all sync.WaitGroup
		for i := range 40 {
			for step, do := range operations(s, fmt.Sprintf("a:%d", i)) {
				all.Go(func() {
					if got, err := do(); err == nil {
						t.Errorf("%s of a frozen server: %v", step, got)
					}
				})
			}
		}
		all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("an operation hangs on a frozen server")
	}
	server.Thaw()
	eventually(t, "the server is used again", func() error {
		_, err := s.Claim(context.Background(), "b:1", hold("own"), true)
		return err
	})
}

func TestTimeoutEndsTheWaitForOthers(t *testing.T) {
	s := open(t, Options{Addresses: []string{"127.0.0.1:1"}, Timeout: 50 * time.Millisecond})
	s.current.Load().batches.underWay = maxBatches // whose answers never come
	for _, step := range []string{"claim", "complete", "lookup", "bind"} {
		if got, err := operations(s, "a:1")[step](); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, %v", step, got, err)
		}
	}
}

func TestRestartedServerIsUsedAgain(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	claim(t, s, "a:1", "own")
	if _, err := s.Renew(context.Background(), "a:1", hold("own")); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for step, do := range operations(s, "a:1") {
		if got, err := do(); err == nil {
			t.Errorf("%s without a server: %v", step, got)
		}
	}
	server.Start()
	eventually(t, "the server is used again", func() error { return s.Ping(context.Background()) })
	// Its memory and its scripts are gone: the owner puts its claim back.
	h := hold("own")
	h.Attempt = 4
	if ok, err := s.Renew(context.Background(), "a:1", h); !ok || err != nil {
		t.Errorf("renew after a restart: %v, %v", ok, err)
	}
	if r, err := s.Lookup(context.Background(), "a:1"); err != nil || !r.OwnedBy("own") || r.Attempt != 4 {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
}

func TestStoreThatWasOpenedBeforeTheServerFindsIt(t *testing.T) {
	server := harness.StartRedis(t)
	server.Kill()
	s := openAt(t, server.Addr)
	if err := s.Ping(context.Background()); err == nil {
		t.Fatal("a server that is not there answered")
	}
	server.Start()
	eventually(t, "the server is found", func() error {
		return s.Complete(context.Background(), "a:1", dedupe.Done{Mark: 3, TTL: time.Hour})
	})
}

// After a failover the name of the primary leads to another server, while the
// pool still holds connections to the old one, now a replica.
func TestConnectionsToAFormerPrimaryAreLeft(t *testing.T) {
	for name, first := range map[string]func(s *Store, i int) error{
		"by writes": func(s *Store, i int) error {
			_, err := s.Claim(context.Background(), fmt.Sprintf("a:%d", i), hold("own"), true)
			return err
		},
		"by scripts": func(s *Store, i int) error {
			_, err := s.Renew(context.Background(), fmt.Sprintf("a:%d", i), hold("own"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, fresh := harness.StartRedis(t), harness.StartRedis(t)
			proxy := startProxy(t, old.Addr)
			s := openAt(t, proxy.addr)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() { _ = first(s, i) })
			}
			all.Wait()
			old.Do("replicaof", "127.0.0.1", fresh.Port())
			target := fresh.Addr
			proxy.target.Store(&target)
			eventually(t, "the new primary is used", func() error { return first(s, 100) })
			for i := range 50 {
				if err := first(s, 200+i); err != nil {
					t.Errorf("a connection to the old one is still used: %v", err)
				}
			}
		})
	}
}

// go-redis knows READONLY by its wording, and only as the answer to the first
// command of a batch.
func TestReplicaIsKnownByAnyWording(t *testing.T) {
	for _, wording := range []string{
		"READONLY You can't write against a read only replica.",
		"ERR READONLY You can't write against a read only slave",
		"ERR proxy: upstream said -READONLY",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	} {
		addr := startStub(t, func(args []string) string {
			switch args[0] {
			case "set", "evalsha", "eval":
				return "-" + wording
			case "get":
				return "$-1"
			case "pttl":
				return ":-2"
			}
			return ""
		})
		s := openAt(t, addr)
		eventually(t, "the connections are left: "+wording, func() error {
			before := s.current.Load()
			if _, err := s.Claim(context.Background(), "a:1", hold("own"), true); err == nil {
				t.Fatal("a replica accepted a claim")
			}
			if s.current.Load() == before {
				return errors.New("the client is still the same")
			}
			return nil
		})
	}
}

func TestServerThatRefusesTheConnectionAnswersNothing(t *testing.T) {
	for _, wording := range []string{
		"WRONGPASS invalid username-password pair or user is disabled.",
		"LOADING Redis is loading the dataset in memory",
		"NOAUTH Authentication required.",
		"ERR max number of clients reached",
	} {
		addr := startStub(t, func([]string) string { return "-" + wording })
		s := open(t, Options{Addresses: []string{addr}, Password: "pw-of-mine"})
		for step, do := range operations(s, "a:1") {
			checkRefused(t, step, wording, do)
		}
	}
}

func TestErrorsNeverShowThePassword(t *testing.T) {
	const password = "hunter2-of-redis"
	addr := startStub(t, func(args []string) string {
		return fmt.Sprintf("-ERR unknown command '%s', with args beginning with: %q", args[0], args[1:])
	})
	for name, o := range map[string]Options{
		"options": {Addresses: []string{addr}, Password: password},
		"user":    {Addresses: []string{addr}, Username: "u", Password: password},
		"URL":     {URL: "redis://u:" + password + "@" + addr},
	} {
		s := open(t, o)
		for step, do := range operations(s, "a:1") {
			if _, err := do(); err == nil {
				t.Errorf("%s: %s succeeded", name, step)
			} else if contains(err, password) {
				t.Errorf("%s: %s shows the password: %v", name, step, err)
			}
		}
	}
}

// contains looks for text in err and in all that it wraps.
func contains(err error, text string) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := openAt(t, "127.0.0.1:1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
	for step, do := range operations(s, "a:1") {
		if _, err := do(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", step, err)
		}
	}
	if err := s.Update(Options{Addresses: []string{"127.0.0.1:1"}}); !errors.Is(err, ErrClosed) {
		t.Errorf("update: %v", err)
	}
}
