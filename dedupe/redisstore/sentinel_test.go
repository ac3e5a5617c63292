package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// watched is a primary with replicas, and sentinels that watch it.
type watched struct{ *harness.Watched }

func startWatched(t *testing.T) watched {
	t.Helper()
	return watched{harness.StartWatched(t)}
}

// open makes a store that asks the sentinels.
func (w watched) open(t *testing.T) *Store {
	t.Helper()
	return open(t, Options{SentinelMaster: harness.Master, Addresses: w.Addresses(), Timeout: time.Second})
}

// asked is the sentinel that tells s of failovers.
func (w watched) asked(t *testing.T) (found *harness.Redis) {
	t.Helper()
	eventually(t, "the store listens to a sentinel", func() error {
		for _, sentinel := range w.Sentinels {
			if clients := sentinel.Do("client", "list").(string); strings.Contains(clients, "cmd=subscribe") {
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
func (w watched) begin(t *testing.T, s *Store) {
	t.Helper()
	for i := range 20 {
		if err := s.Complete(context.Background(), fmt.Sprintf("done:%d", i), dedupe.Done{Mark: 7, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		claim(t, s, fmt.Sprintf("held:%d", i), "own")
	}
	for _, replica := range w.Replicas {
		eventually(t, "the replicas have all", func() error {
			if n := replica.Do("dbsize"); n != int64(40) {
				return fmt.Errorf("one has %d keys", n)
			}
			return nil
		})
	}
}

// finish waits until the store serves again, and checks that it remembers.
func (w watched) finish(t *testing.T, s *Store) {
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
	w.Primary.Kill()
	w.finish(t, s)
}

// A machine that is lost says nothing more: no connection to it ends.
func TestFailoverWhenThePrimarysMachineIsLostWithTheSentinelInUse(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	s := w.open(t)
	w.begin(t, s)
	check(t, s)
	w.asked(t).Freeze()
	w.Primary.Freeze()
	w.finish(t, s)
}

// The former primary is there again before its connections are used.
func TestFormerPrimaryThatWakesUpIsLeft(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	s := w.open(t)
	w.begin(t, s)
	check(t, s)
	w.Primary.Freeze()
	w.AwaitPromotion(t)
	w.Primary.Thaw()
	eventually(t, "the store has heard of it", func() error {
		if got := reasons(check(t, s)); !strings.Contains(got, "restarted") {
			return errors.New(got)
		}
		return nil
	})
	w.finish(t, s)
}
