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

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestClusterFailoverIsFoundWithoutAWordFromTheDeadNode(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*harness.Redis){
		"killed": (*harness.Redis).Kill,
		"frozen": (*harness.Redis).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := harness.StartCluster(t, 1)
			s := open(t, Options{Addresses: []string{nodes[0].Addr}, Cluster: true, Timeout: time.Second})
			done := keysOf(s, nodes, 0, 20)
			for _, key := range done {
				if err := s.Complete(context.Background(), key, dedupe.Done{Mark: 7, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
			check(t, s)
			eventually(t, "the replica has all", func() error {
				if n := nodes[3].Do("dbsize"); n != nodes[0].Do("dbsize") {
					return fmt.Errorf("it has %v keys", n)
				}
				return nil
			})
			lose(nodes[0])
			at := time.Now()
			eventually(t, "the promoted replica is used", func() error {
				r, err := s.Claim(context.Background(), done[0], hold("copy"), true)
				if err == nil && r.State != dedupe.Completed {
					t.Fatalf("an event that was done: %+v", r)
				}
				return err
			})
			t.Logf("served again after %v", time.Since(at).Round(10*time.Millisecond))
			for _, key := range done {
				if r := claim(t, s, key, "copy"); r.State != dedupe.Completed {
					t.Errorf("an event that was done: %+v", r)
				}
				if _, err := s.Renew(context.Background(), key, hold("copy")); err != nil {
					t.Errorf("a script after the failover: %v", err)
				}
			}
			if got := reasons(check(t, s)); !strings.Contains(got, "restarted") {
				t.Errorf("the check says %q", got)
			}
		})
	}
}

func TestFrozenNodeHoldsUpNoKeyOfTheOthers(t *testing.T) {
	t.Parallel()
	nodes := harness.StartCluster(t, 0, "--cluster-require-full-coverage", "no")
	s := open(t, Options{Addresses: []string{nodes[1].Addr}, Cluster: true, Timeout: patience})
	checkLife(t, s)
	slow, quick := keysOf(s, nodes, 0, 40), keysOf(s, nodes, 1, 40)
	nodes[0].Freeze()
	var waiting sync.WaitGroup
	var ended atomic.Int32
	for _, key := range slow {
		waiting.Go(func() {
			_, _ = s.Claim(context.Background(), key, hold("own"), true) // thawed, it may have another role
			ended.Add(1)
		})
	}
	slowNode, err := s.current.Load().combinerOf(context.Background(), s.current.Load().eventKey(slow[0]))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "callers of the frozen node queue", func() error {
		slowNode.mu.Lock()
		defer slowNode.mu.Unlock()
		if len(slowNode.queue) == 0 && ended.Load() == 0 {
			return errors.New("none does")
		}
		return nil
	})
	for _, key := range quick {
		if r := claim(t, s, key, "own"); !r.OwnedBy("own") {
			t.Errorf("claimed %+v", r)
		}
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("%d callers of the frozen node were done before those of another", n)
	}
	nodes[0].Thaw()
	waiting.Wait()
}

// Slots move while two owners race for each event.
func TestSlotsThatMoveGiveNoEventTwoOwners(t *testing.T) {
	t.Parallel()
	nodes := harness.StartCluster(t, 0)
	s := open(t, Options{Addresses: []string{nodes[0].Addr}, Cluster: true})
	stop := make(chan struct{})
	var racing sync.WaitGroup
	var events atomic.Int64
	for range 8 {
		racing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				key := dedupe.Key("race", fmt.Sprintf("evt_%d", events.Add(1)), "")
				if err := race(s, key); err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
	}
	harness.Reshard(t, nodes[0], nodes[1], 700)
	harness.Reshard(t, nodes[1], nodes[2], 700)
	close(stop)
	racing.Wait()
	n := events.Load()
	t.Logf("%d events while slots moved", n)
	for i := range n {
		if r, err := s.Lookup(context.Background(), dedupe.Key("race", fmt.Sprintf("evt_%d", i+1), "")); err != nil || r.State != dedupe.Completed {
			t.Fatalf("event %d: %+v, %v", i+1, r, err)
		}
	}
}

// race lets two claim an event, and the owner renew, fail, claim again and end
// it.
func race(s *Store, key string) error {
	ctx := context.Background()
	var owners atomic.Int32
	var owner atomic.Value
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, token := range []string{"a", "b"} {
		both.Go(func() {
			r, err := s.Claim(ctx, key, hold(token), true)
			if errs[i] = err; err == nil && r.OwnedBy(token) {
				owners.Add(1)
				owner.Store(token)
			}
		})
	}
	both.Wait()
	if err := errors.Join(errs...); err != nil || owners.Load() != 1 {
		return fmt.Errorf("%d owners, %w", owners.Load(), err)
	}
	h := hold(owner.Load().(string))
	if ok, err := s.Renew(ctx, key, h); err != nil || !ok {
		return fmt.Errorf("renewed: %v, %w", ok, err)
	}
	if err := s.Release(ctx, key, h); err != nil {
		return err
	}
	if r, err := s.Claim(ctx, key, h, true); err != nil || !r.OwnedBy(h.Token) || r.Attempt != 2 {
		return fmt.Errorf("claimed again: %+v, %w", r, err)
	}
	return s.Complete(ctx, key, dedupe.Done{Mark: 5, TTL: time.Hour})
}
