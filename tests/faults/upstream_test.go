package faults

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// request is one request that reached the upstream, as the upstream saw it.
type request struct {
	try   string
	event string
	word  string
	step  string
	start time.Time
	// end is when the upstream stopped working on it.
	end time.Time
	// worked is when it did what the event asks for; zero if it never did.
	worked time.Time
	// accepted is when it began to send an accepted answer, complete or longer than
	// a gateway holds; zero if it did not.
	accepted time.Time
	// refused is likewise when it began to send one that is no success.
	refused time.Time
	// broke is when it broke the connection off.
	broke time.Time
}

// upstream is a receiver that knows nothing of duplicates, and its ledger.
type upstream struct {
	t    testing.TB
	addr string

	mu       sync.Mutex
	server   *http.Server
	steps    map[string][]step
	ledger   map[string][]*request
	override step // for all requests, while it is set
	healthy  bool
	rng      *rand.Rand
}

func startUpstream(t testing.TB, events []*event) *upstream {
	u := &upstream{t: t, addr: "127.0.0.1:" + harness.FreePort(t), steps: make(map[string][]step),
		ledger: make(map[string][]*request), rng: rand.New(rand.NewPCG(1, 1))}
	for _, e := range events {
		u.steps[e.id] = e.steps
	}
	u.open()
	t.Cleanup(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.server.Close()
	})
	return u
}

// open begins to listen.
func (u *upstream) open() {
	var l net.Listener
	harness.Eventually(u.t, "the upstream listens again", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", u.addr)
		return err == nil
	})
	s := &http.Server{Handler: u}
	u.mu.Lock()
	u.server = s
	u.mu.Unlock()
	go func() { _ = s.Serve(l) }()
}

// shut stops listening and closes connections that nobody uses. Requests under
// way go on.
func (u *upstream) shut() {
	u.mu.Lock()
	s := u.server
	u.mu.Unlock()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(over); err != nil && !errors.Is(err, context.Canceled) {
		u.t.Error(err)
	}
}

// all makes every request end the same way, until it is called without a step.
func (u *upstream) all(s step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.override = s
}

// heal ends all faults of the upstream for good.
func (u *upstream) heal() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.override, u.healthy = step{}, true
}

// ServeHTTP implements [http.Handler].
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{
		try: r.Header.Get(tryHeader), event: r.Header.Get(harness.EventHeader), word: r.Header.Get("Webhook-Dedupe"), start: time.Now(),
	}
	s, work := u.begin(q)
	defer func() { u.note(func() { q.end = time.Now() }) }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		u.note(func() { q.step = "the request was cut off" })
		return
	}
	s.run(&service{u: u, q: q, wire: &httpWire{u.t, w, r}, work: work})
}

// begin opens a line in the ledger and decides what becomes of the request.
func (u *upstream) begin(q *request) (s step, work time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := len(u.ledger[q.event])
	u.ledger[q.event] = append(u.ledger[q.event], q)
	s = accepts
	switch {
	case u.healthy:
	case u.override.run != nil:
		s = u.override
	case n < len(u.steps[q.event]):
		s = u.steps[q.event][n]
	}
	q.step = s.name
	return s, time.Duration(u.rng.Int64N(int64(60 * time.Millisecond)))
}

func (u *upstream) note(write func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	write()
}
