package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// watched is a primary with replicas, and sentinels that watch it.
type watched struct {
	primary   *server
	replicas  []*server
	sentinels []*server
}

// startWatched starts three sentinels over a primary with two replicas.
func startWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{primary: startServer(t, "--repl-diskless-sync-delay", "0")}
	for range 2 {
		w.replicas = append(w.replicas, startServer(t, "--replicaof", "127.0.0.1 "+w.primary.port, "--repl-diskless-sync-delay", "0"))
	}
	for _, replica := range w.replicas {
		replica.waitForInfo("replication", "master_link_status:up")
	}
	for range 3 {
		w.sentinels = append(w.sentinels, startSentinel(t, w.primary, 2))
	}
	for _, sentinel := range w.sentinels {
		eventually(t, "the sentinels know each other and the replicas", func() error {
			info := sentinel.do("info", "sentinel").(string)
			if !strings.Contains(info, "slaves=2,sentinels=3") {
				return errors.New(info)
			}
			return nil
		})
	}
	return w
}

// master is what the sentinels call the primary.
const master = "mymaster"

func startSentinel(t *testing.T, primary *server, quorum int) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), dir: t.TempDir()}
	file := filepath.Join(s.dir, "sentinel.conf")
	conf := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor %s 127.0.0.1 %s %d\n"+
		"sentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 3000\n", s.port, s.dir, master, primary.port, quorum)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command("redis-server", file, "--sentinel")
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("these tests need redis-server: %v", err)
	}
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr(), Protocol: 2})
	t.Cleanup(func() { s.admin.Close(); s.kill() })
	eventually(t, "the sentinel answers", func() error { return answers(s.admin) })
	return s
}

// open makes a store that asks the sentinels.
func (w *watched) open(t *testing.T) *Store {
	t.Helper()
	o := Options{SentinelMaster: master, Timeout: time.Second}
	for _, sentinel := range w.sentinels {
		o.Addresses = append(o.Addresses, sentinel.addr())
	}
	return open(t, o)
}

// asked is the sentinel that tells s of failovers.
func (w *watched) asked(t *testing.T) (found *server) {
	t.Helper()
	eventually(t, "the store listens to a sentinel", func() error {
		for _, sentinel := range w.sentinels {
			if clients := sentinel.do("client", "list").(string); strings.Contains(clients, "cmd=subscribe") {
				found = sentinel
				return nil
			}
		}
		return errors.New("to none")
	})
	return found
}

// begin finishes some events and claims others, and waits until the replicas
// know of both.
func (w *watched) begin(t *testing.T, s *Store) {
	t.Helper()
	for i := range 20 {
		if err := s.Complete(context.Background(), fmt.Sprintf("done:%d", i), dedupe.Done{Mark: 7, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		claim(t, s, fmt.Sprintf("held:%d", i), "own")
	}
	for _, replica := range w.replicas {
		eventually(t, "the replicas have all", func() error {
			if n := replica.do("dbsize"); n != int64(40) {
				return fmt.Errorf("one has %d keys", n)
			}
			return nil
		})
	}
}

// finish waits until the store serves again, and checks that it remembers.
func (w *watched) finish(t *testing.T, s *Store) {
	t.Helper()
	lost := time.Now()
	errs := 0
	eventually(t, "the new primary is used", func() error {
		_, err := s.Claim(context.Background(), "new:1", hold("own"), true)
		if err != nil {
			errs++
		}
		return err
	})
	t.Logf("served again after %v and %d refused claims", time.Since(lost).Round(10*time.Millisecond), errs)
	for i := range 20 {
		h := hold("own")
		if ok, err := s.Renew(context.Background(), fmt.Sprintf("held:%d", i), h); err != nil || !ok {
			t.Errorf("the owner could not renew after the failover: %v, %v", ok, err)
		}
		if err := s.Complete(context.Background(), fmt.Sprintf("held:%d", i), dedupe.Done{Mark: 8, TTL: time.Hour}); err != nil {
			t.Errorf("a connection to the old primary is still used: %v", err)
		}
		if r := claim(t, s, fmt.Sprintf("done:%d", i), "copy"); r.State != dedupe.Completed || r.Mark != 7 {
			t.Errorf("an event that was done: %+v", r)
		}
	}
	if got := reasons(check(t, s)); !strings.Contains(got, "restarted") || strings.Contains(got, "unreachable") {
		t.Errorf("the check says %q", got)
	}
}

func TestSentinelFailoverKeepsDoneEventsAndClaims(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	s := w.open(t)
	w.begin(t, s)
	check(t, s)
	w.primary.kill()
	w.finish(t, s)
}

// A machine that is lost says nothing more: no connection to it ends.
func TestFailoverWhenThePrimarysMachineIsLostWithTheSentinelInUse(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	s := w.open(t)
	w.begin(t, s)
	check(t, s)
	w.asked(t).signal(syscall.SIGSTOP)
	w.primary.signal(syscall.SIGSTOP)
	w.finish(t, s)
}

// The former primary is there again before its connections are used.
func TestFormerPrimaryThatWakesUpIsLeft(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	s := w.open(t)
	w.begin(t, s)
	check(t, s)
	w.primary.signal(syscall.SIGSTOP)
	for _, sentinel := range w.sentinels {
		eventually(t, "another is promoted", func() error {
			if info := sentinel.do("info", "sentinel").(string); strings.Contains(info, "address="+w.primary.addr()) {
				return errors.New(info)
			}
			return nil
		})
	}
	w.primary.signal(syscall.SIGCONT)
	eventually(t, "the store has heard of it", func() error {
		if got := reasons(check(t, s)); !strings.Contains(got, "restarted") {
			return errors.New(got)
		}
		return nil
	})
	w.finish(t, s)
}
