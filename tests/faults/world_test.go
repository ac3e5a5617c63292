package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// The times of a run: a lease is as short as it can be, and everything else
// goes with it. The grace period is longer than anything takes, so that an exit
// in good order cuts nothing off.
const (
	lease           = time.Second
	upstreamTimeout = 1500 * time.Millisecond
	copiesWait      = 300 * time.Millisecond
	tryTimeout      = 800 * time.Millisecond
	// A gateway holds so much of an answer; a long one is longer.
	maxResponse = 32 << 10
	longAnswer  = 4 * maxResponse
	gracePeriod = 15 * time.Second
	// perFault is about what a fault takes, with all lanes at work.
	perFault = 450 * time.Millisecond
	// Between two storms of faults there is a calm, in which nothing excuses
	// anything.
	storm = 5 * time.Second
	calm  = 4 * time.Second
)

// tryHeader names one request of one sender, from there to the upstream's
// ledger and into the gateway's log.
const tryHeader = "X-Test-Try"

// scale is how large a run is.
type scale struct {
	events, faults int
	seed           uint64
}

// world is all that takes part in a run.
type world struct {
	scale
	t        *testing.T
	start    time.Time
	gateways []*harness.Gateway
	routes   []*route
	upstream *upstream
	php      *harness.PHP
	signers  map[string]*harness.Sender
	clients  []*http.Client // one for each protocol
	spans    spans
	events   []*event
	lanes    []*lane
	// spools says that a gateway keeps what the store could not be told over its
	// own end.
	spools bool
	// resolve is how an operator decides on an event in doubt that stays back.
	resolve func(e *event, worked bool)
	// released says that nothing stays back any more.
	released bool
	// healed is closed when the last fault is over.
	healed chan struct{}
}

func newWorld(t *testing.T, s scale) *world {
	w := &world{scale: s, t: t, routes: routes(), signers: make(map[string]*harness.Sender), clients: newClients(t), healed: make(chan struct{})}
	for _, r := range w.routes {
		w.signers[r.sender] = harness.NewSender(t, r.sender, harness.Secret)
	}
	for n := range s.events {
		w.events = append(w.events, newEvent(w, n))
	}
	w.upstream = startUpstream(t, w.events)
	w.php = startPHP(t, w.upstream)
	return w
}

// storms is about how long the faults take, without the calms.
func (w *world) storms() time.Duration { return perFault * time.Duration(w.faults) }

// length is about how long the faults take with the calms.
func (w *world) length() time.Duration { return withCalms(w.storms()) }

// withCalms puts the calms between the storms.
func withCalms(d time.Duration) time.Duration { return d + d/storm*calm }

// random is a source of its own for a part of the run.
func (w *world) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, part)) }

// The parts that have sources of their own; events count from partEvents.
const (
	partLanes  = 1
	partEvents = 1000
)

func (w *world) addGateway(options ...harness.Option) {
	options = append(options, harness.WithGlobal(fmt.Sprintf("grace_period %v", gracePeriod)))
	w.gateways = append(w.gateways, harness.StartGateway(w.t, w.site(0), options...))
}

// onRedis is two gateways, each with a network of its own to one Redis server.
func onRedis(w *world) {
	r := harness.StartRedis(w.t, "--appendonly", "yes", "--appendfsync", "always")
	w.spools = true
	w.resolve = resolveInRedis(r)
	for n := range 2 {
		proxy := harness.StartRedisProxy(w.t, r.Addr)
		way := startRelay(w.t, proxy.Addr)
		w.addGateway(harness.WithRedis(way.addr))
		w.addLane(3, w.gatewayFaults(n))
		w.addLane(2, w.linkFaults(n, proxy, way))
	}
	w.addLane(4, w.redisFaults(r))
	w.addLane(3, w.upstreamFaults())
}

// onFiles is one gateway on the file store.
func onFiles(w *world) {
	w.resolve = resolveByReload(w)
	w.addGateway()
	w.addLane(3, w.gatewayFaults(0))
	w.addLane(2, w.upstreamFaults())
}

// live runs senders and faults until every sender is through.
func (w *world) live() {
	w.start = time.Now()
	var senders, lanes sync.WaitGroup
	for _, e := range w.events {
		senders.Go(func() { e.send(w) })
	}
	for n, quota := range w.quotas() {
		lanes.Go(func() { w.lanes[n].run(w, quota) })
	}
	lanes.Wait()
	w.upstream.heal()
	close(w.healed)
	senders.Wait()
	w.decide()
	w.replayAll()
	for _, g := range w.gateways {
		g.Terminate() // now every line is in the log
	}
}

// replayAll has an operator send every event once more, when nothing is wrong
// any more.
func (w *world) replayAll() {
	w.each(w.events, func(e *event) { e.try(w, true) })
}

// each does something for each event, for some at once.
func (w *world) each(events []*event, do func(*event)) {
	queue := make(chan *event)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for e := range queue {
				do(e)
			}
		})
	}
	for _, e := range events {
		queue <- e
	}
	close(queue)
	workers.Wait()
}

// pause waits as the schedule says.
func pause(rng *rand.Rand, least, most time.Duration) {
	<-time.After(least + time.Duration(rng.Int64N(int64(most-least)+1)))
}
