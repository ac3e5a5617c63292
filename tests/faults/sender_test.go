package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// ladder are the gaps between the eleven attempts of a sender: Paymos's, with
// a minute made 50 ms, and cut off where they would outlast the run.
var ladder = []time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1600 * time.Millisecond, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second,
}

// event is one event, its sender, and the sender's ledger.
type event struct {
	id      string
	route   *route
	begins  time.Duration // after the start of the run
	replays int           // by an operator, once it is acknowledged
	steps   []step        // what the upstream does with its first requests

	rng *rand.Rand // used by the sender's goroutine only

	mu     sync.Mutex
	tries  []*try
	thefts []*try // the same bytes under another id
	// decided is when an operator made it known what nobody could know.
	decided decision
}

// try is one request of a sender, as the sender saw it.
type try struct {
	id string
	// torn tries break off within their body.
	torn    bool
	gateway int
	replay  bool
	dice    *rand.Rand // for what is left to chance in it
	start   time.Time
	end     time.Time
	status  int
	word    string
	err     error
}

func (tr *try) acknowledged() bool { return tr.err == nil && tr.status >= 200 && tr.status <= 299 }

func newEvent(w *world, n int) *event {
	rng := w.random(partEvents + uint64(n))
	r := pickRoute(rng, w.routes)
	return &event{
		id:      fmt.Sprintf("evt_%s_%d_%04d", r.name, w.seed, n),
		route:   r,
		begins:  time.Duration(rng.Int64N(int64(w.length()))),
		replays: max(0, rng.IntN(8)-5),
		steps:   randomSteps(rng),
		rng:     rng,
	}
}

func pickRoute(rng *rand.Rand, routes []*route) *route {
	whole := 0
	for _, r := range routes {
		whole += r.share
	}
	at := rng.IntN(whole)
	for _, r := range routes {
		if at -= r.share; at < 0 {
			return r
		}
	}
	panic("unreachable")
}

// newClients are for all senders: HTTP/1.1 with a connection for each try, and
// HTTP/2 with connections that are kept.
func newClients(t *testing.T) (clients []*http.Client) {
	for _, speak := range []func(*http.Protocols, bool){(*http.Protocols).SetHTTP1, (*http.Protocols).SetUnencryptedHTTP2} {
		rt := &http.Transport{DisableKeepAlives: len(clients) == 0, DisableCompression: true, Protocols: new(http.Protocols)}
		speak(rt.Protocols, true)
		t.Cleanup(rt.CloseIdleConnections)
		clients = append(clients, &http.Client{
			Transport:     rt,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		})
	}
	return clients
}

// send follows the ladder until an attempt is acknowledged. When all faults are
// over and it still is not, an operator goes on.
func (e *event) send(w *world) {
	e.wait(w, e.begins)
	for n := 0; !e.attempt(w); n++ {
		if n < len(ladder) {
			e.wait(w, ladder[n])
			continue
		}
		<-w.healed
		if n > len(ladder)+operatorTries || n > len(ladder) && e.held() {
			return
		}
		pause(e.rng, lease/2, w.spread()+lease*time.Duration(n-len(ladder))) // rarer with every try
	}
	for range e.replays {
		e.wait(w, time.Duration(e.rng.Int64N(int64(4*time.Second))))
		e.try(w, true)
	}
}

// operatorTries is how often an operator tries what he knows must work now.
const operatorTries = 10

// wait waits for d. When all faults are over, it need not be that long.
func (e *event) wait(w *world, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-w.healed:
	}
	soon := time.NewTimer(lease/4 + time.Duration(e.rng.Int64N(int64(w.spread()))))
	defer soon.Stop()
	select {
	case <-timer.C:
	case <-soon.C:
	}
}

// spread is over what time the senders come again when all faults are over, for
// the machine has to serve them.
func (w *world) spread() time.Duration {
	return lease + time.Duration(w.scale.events)*5*time.Millisecond
}

// attempt sends the event once, sometimes twice at once, and reports whether it
// was acknowledged.
func (e *event) attempt(w *world) bool {
	if e.rng.IntN(5) > 0 {
		return e.try(w, false)
	}
	var first, second bool
	var both sync.WaitGroup
	one, two := e.prepare(w, false), e.prepare(w, false)
	both.Go(func() { first = e.exchange(w, one) })
	both.Go(func() { second = e.exchange(w, two) })
	both.Wait()
	return first || second
}

func (e *event) try(w *world, replay bool) bool { return e.exchange(w, e.prepare(w, replay)) }

// held reports whether the last word was that nobody but an operator can help.
func (e *event) held() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tries) > 0 && e.tries[len(e.tries)-1].word == "held"
}

// prepare picks a gateway and opens a line in the ledger.
func (e *event) prepare(w *world, replay bool) *try {
	e.mu.Lock()
	defer e.mu.Unlock()
	tr := &try{id: fmt.Sprintf("%s#%d", e.id, len(e.tries)+1), gateway: e.rng.IntN(len(w.gateways)), replay: replay,
		dice: rand.New(rand.NewPCG(e.rng.Uint64(), 1)), start: time.Now()}
	e.tries = append(e.tries, tr)
	return tr
}

// exchange sends one request and fills in the line.
func (e *event) exchange(w *world, tr *try) bool {
	// Every event has a body of its own: equal ones that are signed in the same
	// second would be one and the same to the replay guard.
	body := []byte(fmt.Sprintf(`{"id":%q,"event_id":%q,"type":"test"}`, e.id, e.id))
	d := w.signers[e.route.sender].WithBody(e.id, body).To(e.route.path()).With(tryHeader, tr.id)
	var stream io.Reader = bytes.NewReader(d.Body)
	switch tr.dice.IntN(12) {
	case 0:
		stream = &slowly{body: d.Body, pause: 40 * time.Millisecond}
	case 1:
		if !tr.replay {
			tr.torn = true
			stream = &slowly{body: d.Body, breaks: true}
		}
	}
	e.fill(w, tr, d, stream)
	if e.route.guarded && tr.err == nil && tr.status != http.StatusServiceUnavailable && tr.dice.IntN(3) == 0 {
		e.steal(w, tr, d)
	}
	return tr.acknowledged()
}

// fill sends a delivery and notes what came of it.
func (e *event) fill(w *world, tr *try, d *harness.Delivery, body io.Reader) {
	ctx, cancel := context.WithTimeout(context.Background(), w.patience())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, d.Method, w.gateways[tr.gateway].URL+d.Path, body)
	if err != nil {
		panic(err) // the URL is our own
	}
	r.Header = d.Header
	r.GetBody = nil
	resp, err := w.clients[tr.dice.IntN(len(w.clients))].Do(r)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	tr.end, tr.err = time.Now(), err
	if err == nil {
		tr.status, tr.word = resp.StatusCode, resp.Header.Get("Webhook-Dedupe")
	}
}

// slowly is a body that comes in bits, or never ends.
type slowly struct {
	body   []byte
	pause  time.Duration
	breaks bool
}

var errTorn = errors.New("the sender breaks off")

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.body) == 0 {
		return 0, io.EOF
	}
	if s.breaks && len(s.body) < 60 {
		return 0, errTorn
	}
	<-time.After(s.pause)
	n := copy(p, s.body[:min(len(s.body), 30)])
	s.body = s.body[n:]
	return n, nil
}

// patience is how long a sender waits for an answer: as long as senders do, and
// when all faults are over, as long as it takes on a busy machine.
func (w *world) patience() time.Duration {
	select {
	case <-w.healed:
		return harness.Patience
	default:
		return tryTimeout
	}
}
