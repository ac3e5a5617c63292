package faults

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// failover is two gateways in front of one upstream, on Redis servers of which
// one will be lost: events that are done, and deliveries in the upstream.
type failover struct {
	u        *harness.Upstream
	sender   *harness.Sender
	gateways []*harness.Gateway
	latch    *harness.Latch
	done     []*harness.Delivery
	inFlight []*harness.Delivery
	calls    []*harness.Call
}

func newFailover(t *testing.T, store ...string) *failover {
	t.Helper()
	f := &failover{u: harness.StartUpstream(t), sender: harness.NewSender(t, "paymos"), latch: harness.NewLatch()}
	for range 2 {
		f.gateways = append(f.gateways, harness.StartGateway(t, proxied(f.u, "lease 30s", "wait 0s"), harness.WithRedis(store[0], store[1:]...)))
	}
	return f
}

// begin finishes some events, and leaves others in the upstream.
func (f *failover) begin(t *testing.T) {
	t.Helper()
	f.done = f.deliver(t, 10)
	for n := range 10 {
		d := f.sender.Event(harness.Unique("evt"))
		f.u.On(d.Event, harness.After(f.latch, harness.Status(200)))
		f.inFlight = append(f.inFlight, d)
		f.calls = append(f.calls, f.gateways[n%2].Begin(t, harness.HTTP1, d))
		f.u.Await(t, d.Event, 1)
	}
}

// deliver sends n new events to each gateway, all at once so that every
// connection to the store has its turn. Each of them must be let through.
func (f *failover) deliver(t *testing.T, n int) (events []*harness.Delivery) {
	t.Helper()
	var all sync.WaitGroup
	for _, g := range f.gateways {
		for range n {
			d := f.sender.Event(harness.Unique("evt"))
			events = append(events, d)
			all.Go(func() {
				if a := g.Send(t, d); a.String() != "200 first" {
					t.Errorf("a new event got %q", a)
				}
			})
		}
	}
	all.Wait()
	return events
}

// end lets the upstream answer while no server takes the outcome, waits until
// there is one again, and checks that nothing is forgotten and that no
// connection to the lost server makes itself felt any more.
func (f *failover) end(t *testing.T) {
	t.Helper()
	f.latch.Release()
	for _, c := range f.calls {
		if a := c.Answer(); a.String() != "200 first" {
			t.Errorf("a sender whose event was accepted got %q", a)
		}
	}
	for _, g := range f.gateways {
		for range 40 { // so many that every node of a cluster has some
			g.RetryUntil(t, f.sender.Event(harness.Unique("evt")), "200 first|200 retry", "503", "503 in-flight")
		}
		harness.Eventually(t, "no outcome waits", func() bool { return g.Metric("settlements_waiting") == 0 })
	}
	errors := f.storeErrors()
	fresh := append(f.deliver(t, 40), f.deliver(t, 40)...)
	for _, g := range f.gateways {
		for _, d := range append(append(fresh[:20:20], f.done...), f.inFlight...) {
			g.Expect(t, d, "200 duplicate")
		}
	}
	if after := f.storeErrors(); after != errors {
		t.Errorf("%v deliveries were refused for the store after it had served again", after-errors)
	}
	for _, d := range append(append(fresh, f.done...), f.inFlight...) {
		if words := f.u.Words(d.Event); len(words) != 1 || words[0] != "first" {
			t.Errorf("event %s reached the upstream as %q", d.Event, words)
		}
	}
	for _, g := range f.gateways {
		if starts := strings.Count(strings.Join(g.Output(), "\n"), `"serving initial configuration"`); starts != 1 {
			t.Errorf("a gateway was started %d times", starts)
		}
	}
	t.Logf("%v deliveries were refused while no server served", errors)
}

// storeErrors counts what the gateways say of a store that does not serve.
func (f *failover) storeErrors() (n float64) {
	for _, g := range f.gateways {
		n += g.Metric("rejections_total", `reason="store"`)
		n += float64(len(g.Logs(func(e harness.Entry) bool {
			return strings.HasPrefix(e.Text("msg"), "the store could not take an outcome") || strings.HasPrefix(e.Text("msg"), "a lease could not be renewed")
		})))
	}
	return n
}

// awaitReplication waits until the replicas have all that their primary has.
func awaitReplication(t *testing.T, primary *harness.Redis, replicas ...*harness.Redis) {
	t.Helper()
	offset := func(r *harness.Redis) string {
		for line := range strings.Lines(r.Do("INFO", "replication").(string)) {
			if n, ok := strings.CutPrefix(line, "master_repl_offset:"); ok {
				return n
			}
		}
		return ""
	}
	for _, replica := range replicas {
		harness.Eventually(t, "the replica has all", func() bool {
			before := offset(primary)
			return offset(replica) == before && offset(primary) == before
		})
	}
}

func TestSentinelFailoverWithDeliveriesInFlight(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *harness.Watched){
		"killed": func(_ *testing.T, w *harness.Watched) { w.Primary.Kill() },
		// It wakes up as a replica, with all connections to it open.
		"frozen": func(t *testing.T, w *harness.Watched) {
			w.Primary.Freeze()
			w.AwaitPromotion(t)
			w.Primary.Thaw()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.StartWatched(t)
			f := newFailover(t, strings.Join(w.Addresses(), " "), "sentinel "+harness.Master)
			f.begin(t)
			awaitReplication(t, w.Primary, w.Replicas...)
			lose(t, w)
			f.end(t)
		})
	}
}

func TestClusterFailoverWithDeliveriesInFlight(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*harness.Redis){"killed": (*harness.Redis).Kill, "frozen": (*harness.Redis).Freeze} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := harness.StartCluster(t, 1)
			f := newFailover(t, nodes[0].Addr+" "+nodes[1].Addr, "cluster")
			f.begin(t)
			for i, primary := range nodes[:3] {
				awaitReplication(t, primary, nodes[3+i])
			}
			lose(nodes[0])
			harness.Eventually(t, "the replica is promoted", func() bool {
				info, err := nodes[3].Client.Info(context.Background(), "replication").Result()
				return err == nil && strings.Contains(info, "role:master")
			})
			f.end(t)
		})
	}
}

func TestSlotsMoveWithDeliveriesInFlight(t *testing.T) {
	t.Parallel()
	nodes := harness.StartCluster(t, 1)
	f := newFailover(t, nodes[0].Addr, "cluster")
	f.begin(t)
	over := make(chan struct{})
	var senders sync.WaitGroup
	senders.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				f.done = append(f.done, f.deliver(t, 3)...)
			}
		}
	})
	for i, primary := range nodes[:3] {
		harness.Reshard(t, primary, nodes[(i+1)%3], 400)
	}
	close(over)
	senders.Wait()
	if n := f.storeErrors(); n != 0 {
		t.Errorf("%v errors of the store while slots moved", n)
	}
	f.end(t)
}

// pair is a primary and a replica, and a gateway whose way leads to one of them.
type pair struct {
	*failover
	primary, replica *harness.Redis
	way              *harness.RedisProxy
}

func newPair(t *testing.T, args ...string) *pair {
	t.Helper()
	p := &pair{primary: harness.StartRedis(t, append(args, "--repl-diskless-sync-delay", "0")...)}
	p.replica = harness.StartRedis(t, "--replicaof", "127.0.0.1 "+p.primary.Port())
	p.replica.AwaitInfo("replication", "master_link_status:up")
	p.primary.AwaitInfo("replication", "state=online")
	p.way = harness.StartRedisProxy(t, p.primary.Addr)
	p.failover = newFailover(t, p.way.Addr)
	p.begin(t)
	awaitReplication(t, p.primary, p.replica)
	// From here on the primary is alone, and knows it.
	p.replica.Do("REPLICAOF", "127.0.0.1", "1")
	p.primary.AwaitInfo("replication", "connected_slaves:0")
	return p
}

// lose loses the primary with what it alone has, and promotes the replica.
func (p *pair) lose() {
	p.primary.Kill()
	p.replica.Do("REPLICAOF", "NO", "ONE")
	p.way.Redirect(p.replica.Addr)
}

// TestMinReplicasSavesWhatWouldNotBeReplicated: what the primary cannot
// replicate it does not take. The sender of a new event comes again, and the
// outcome of one in the upstream waits at its gateway.
func TestMinReplicasSavesWhatWouldNotBeReplicated(t *testing.T) {
	t.Parallel()
	p := newPair(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
	fresh := p.sender.Event(harness.Unique("evt"))
	p.gateways[0].Expect(t, fresh, "503")
	p.latch.Release()
	for _, c := range p.calls {
		c.Answer()
	}
	for _, g := range p.gateways {
		harness.Eventually(t, "the outcomes wait", func() bool { return g.Metric("settlements_waiting") >= 5 })
	}
	p.lose()
	p.end(t)
	p.gateways[1].RetryUntil(t, fresh, "200 first|200 retry", "503 in-flight")
	p.gateways[0].Expect(t, fresh, "200 duplicate")
	if words := p.u.Words(fresh.Event); len(words) != 1 {
		t.Errorf("the refused event reached the upstream as %q", words)
	}
}

// TestUnreplicatedPrimaryTakesItsEventsAlong is what is lost without it: what
// was done after the last word to the replica is repeated, and not lost.
func TestUnreplicatedPrimaryTakesItsEventsAlong(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	fresh := p.deliver(t, 5)
	p.latch.Release()
	for _, c := range p.calls {
		if a := c.Answer(); a.String() != "200 first" {
			t.Errorf("a sender whose event was accepted got %q", a)
		}
	}
	p.lose()
	for _, d := range fresh {
		p.gateways[0].RetryUntil(t, d, "200 first", "503")
		p.gateways[1].RetryUntil(t, d, "200 duplicate", "503")
	}
	for _, d := range p.done {
		p.gateways[1].Expect(t, d, "200 duplicate")
	}
	// The claims were replicated: the promoted server knows that it knows not.
	for _, d := range p.inFlight {
		p.gateways[1].Expect(t, d, "503 in-flight")
	}
}
