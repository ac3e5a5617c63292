package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// pair is a primary and its replica, and the way to whichever is the primary.
type pair struct {
	primary, replica *harness.Redis
	// link is what the replica follows the primary through.
	link, way *proxy
	store     *Store
}

// startPair starts a pair. args are the primary's.
func startPair(t *testing.T, args ...string) *pair {
	t.Helper()
	p := &pair{primary: harness.StartRedis(t, append(args, "--repl-diskless-sync-delay", "0")...), replica: harness.StartRedis(t)}
	p.link, p.way = startProxy(t, p.primary.Addr), startProxy(t, p.primary.Addr)
	_, port, _ := strings.Cut(p.link.addr, ":")
	p.replica.Do("replicaof", "127.0.0.1", port)
	p.replica.AwaitInfo("replication", "master_link_status:up")
	p.primary.AwaitInfo("replication", "state=online")
	p.store = openAt(t, p.way.addr)
	return p
}

// cut ends the replication so that the primary sees it.
func (p *pair) cut() {
	p.replica.Do("replicaof", "127.0.0.1", "1")
	p.primary.AwaitInfo("replication", "connected_slaves:0")
}

// swallow ends the replication while the primary goes on getting signs of life.
func (p *pair) swallow(t *testing.T) {
	decide, hit := once("ACK", swallow)
	p.link.decideBy(decide)
	eventually(t, "the link is deaf", func() error {
		if !hit.Load() {
			return errors.New("not yet")
		}
		return nil
	})
}

// failOver loses the primary and promotes the replica.
func (p *pair) failOver(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	p.replica.Do("replicaof", "no", "one")
	addr := p.replica.Addr
	p.way.target.Store(&addr)
	eventually(t, "the promoted replica is used", func() error { return p.store.Ping(context.Background()) })
}

// end makes an event done and reports whether that was acknowledged.
func (p *pair) end(key string) error {
	return p.store.Complete(context.Background(), key, dedupe.Done{Mark: 5, TTL: time.Hour})
}

// Redis acknowledges before it replicates. This is the documented limit.
func TestDoneThatWasNotReplicatedIsLostInAFailover(t *testing.T) {
	p := startPair(t)
	p.cut()
	if err := p.end("a:1"); err != nil {
		t.Fatal(err)
	}
	p.failOver(t)
	if r := claim(t, p.store, "a:1", "copy"); !r.OwnedBy("copy") {
		t.Errorf("the event is %+v: was it replicated?", r)
	}
}

func TestMinReplicasRefusesWhatWouldNotBeReplicated(t *testing.T) {
	p := startPair(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
	if err := p.end("a:1"); err != nil {
		t.Fatal(err)
	}
	// WAIT would count the writes of its own connection only.
	eventually(t, "the replica has the event", func() error {
		if p.replica.Do("dbsize") != int64(1) {
			return errors.New("it is empty")
		}
		return nil
	})
	p.cut()
	for step, do := range operations(p.store, "a:2") {
		if step == "ping" || step == "lookup" || step == "release" {
			continue // they write nothing here
		}
		if got, err := do(); err == nil || !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("%s without a replica: %v, %v", step, got, err)
		}
	}
	if f := find(t, check(t, p.store), WritesRefused); !strings.Contains(f.Detail, "NOREPLICAS") {
		t.Errorf("the check says %v", f)
	}
	p.failOver(t)
	if r := claim(t, p.store, "a:1", "copy"); r.State != dedupe.Completed {
		t.Errorf("an event that was acknowledged: %+v", r)
	}
	if r := claim(t, p.store, "a:2", "copy"); !r.OwnedBy("copy") {
		t.Errorf("an event that was refused: %+v", r)
	}
}

// A replica counts for min-replicas-max-lag seconds after its last sign of
// life, and signs of life are not receipts.
func TestMinReplicasSavesNothingThatALivelyReplicaMissed(t *testing.T) {
	p := startPair(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
	p.swallow(t)
	if err := p.end("a:1"); err != nil {
		t.Fatal(err)
	}
	p.failOver(t)
	if r := claim(t, p.store, "a:1", "copy"); !r.OwnedBy("copy") {
		t.Errorf("the event is %+v: was it replicated?", r)
	}
}
