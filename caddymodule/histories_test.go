package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// The route of the histories: everything that has to come to an end does soon.
const historyRoute = `route {
	webhook_dedupe stripe {
		source histories
		secret $SECRET
		upstream_timeout 100ms
		max_response 10
		wait 20ms
		lease 30s
	}
	upstream
}`

// history is two gateways on one store, senders of a few events at the same time,
// and an upstream that does anything. It goes in rounds: between two of them
// nothing is under way, and a lease passes.
type history struct {
	t        *testing.T
	seed     uint64
	gateways [2]*gateway
	records  dedupe.Store

	mu     sync.Mutex
	rng    *rand.Rand
	events map[string]*ledger
	calls  sync.WaitGroup // in the upstream
	calm   bool
}

// ledger is what really became of an event.
type ledger struct {
	now      int // how many deliveries are in the upstream
	calls    int
	unknown  bool // one ended so that nobody can know what it did
	accepted bool // a whole 2xx was written, or as much as decides
	done     bool // and the store knew at the end of a round
}

// pick draws a number below n.
func (h *history) pick(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

func (h *history) violated(format string, args ...any) {
	h.t.Helper()
	h.t.Errorf("seed %d: %s", h.seed, fmt.Sprintf(format, args...))
}

// upstream is the application. What it does is drawn; what it did is noted before
// the gateway can know.
func (h *history) upstream(w http.ResponseWriter, r *http.Request) error {
	h.calls.Add(1)
	defer h.calls.Done()
	var body struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		h.violated("the upstream got another body: %v", err)
	}
	e := h.enter(body.ID, r.Header.Get(resultHeader))
	ended := false
	end := func(note func()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if note(); !ended {
			e.now--
			ended = true
		}
	}
	inDoubt, accepts := func() { e.unknown = true }, func() { e.accepted = true }
	does := h.pick(11)
	if h.calm {
		does = 0
	}
	switch does {
	case 0, 1:
		end(accepts)
		w.WriteHeader([]int{200, 201, 204}[h.pick(3)])
	case 2:
		end(func() {})
		w.WriteHeader([]int{302, 400, 404, 500, 503}[h.pick(5)])
	case 3:
		end(inDoubt)
		panic(http.ErrAbortHandler)
	case 4:
		end(inDoubt)
		return errors.New("the connection was reset")
	case 5: // cut off
		end(inDoubt)
		w.Header().Set("Content-Length", "9")
		_, _ = w.Write([]byte("half"))
	case 6: // long: its status decides
		end(accepts)
		_, _ = w.Write([]byte(strings.Repeat("x", 20)))
	case 7: // long, and refused: that counts when it has ended
		w.WriteHeader([]int{http.StatusConflict, http.StatusFound}[h.pick(2)])
		_, _ = w.Write([]byte(strings.Repeat("x", 20)))
		time.Sleep(time.Duration(h.pick(30)) * time.Millisecond)
		end(func() {})
	case 8: // too slow
		<-r.Context().Done()
		end(inDoubt)
		return r.Context().Err()
	case 9: // long, refused, and at work beyond its time
		w.Header().Set("Content-Length", "30")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(strings.Repeat("x", 20)))
		<-r.Context().Done()
		end(inDoubt)
	default: // does not notice that its time is over, and is accepted after all
		end(func() { e.unknown = true })
		time.Sleep(100*time.Millisecond + overtime + 50*time.Millisecond)
		end(accepts)
		w.WriteHeader(200)
	}
	return nil
}

// enter checks a delivery that comes to the upstream against what came before.
func (h *history) enter(id, word string) *ledger {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.events[id]
	if e.done {
		h.violated("%s was done and reaches the upstream again", id)
	}
	if e.now > 0 {
		h.violated("%s is in the upstream twice", id)
	}
	want := dedupe.ResultFirst
	switch {
	case e.unknown:
		want = dedupe.ResultPossibleRepeat
	case e.calls > 0:
		want = dedupe.ResultRetry
	}
	if word != string(want) {
		h.violated("%s comes to the upstream as %s, want %s", id, word, want)
	}
	e.calls++
	e.now++
	return e
}

// attempt is one of a sender, who may hang up, and checks what it is told.
func (h *history) attempt(id string, g *gateway) {
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	if !h.calm && h.pick(4) == 0 {
		defer time.AfterFunc(time.Duration(h.pick(60))*time.Millisecond, hangUp).Stop()
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // as thrown
				h.violated("%s: a panic: %v", id, p)
			}
		}()
		g.ServeHTTP(w, signed(h.t, "stripe", id).WithContext(ctx))
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	if status := w.Code; status < 300 && !h.events[id].accepted {
		h.violated("%s was answered %d and is not accepted", id, status)
	} else if status >= 300 && status < 400 {
		h.violated("%s was answered %d, which senders follow", id, status)
	}
}

// round sends two copies of each event to each gateway, waits until all is over,
// and looks at what the store holds.
func (h *history) round(now *atomic.Int64) {
	var all sync.WaitGroup
	for id := range h.events {
		for _, g := range h.gateways {
			for range 2 {
				all.Go(func() { h.attempt(id, g) })
			}
		}
	}
	all.Wait()
	h.calls.Wait()
	for id, e := range h.events {
		r := h.record(id)
		for end := time.Now().Add(patience); e.accepted && r.State != dedupe.Completed && time.Now().Before(end); r = h.record(id) {
			time.Sleep(time.Millisecond) // an answer that came late is settled when its call is over
		}
		switch {
		case e.accepted != (r.State == dedupe.Completed):
			h.violated("%s is %s, accepted %v", id, r.State, e.accepted)
		case !e.accepted && r.State != dedupe.Failed && r.State != dedupe.InDoubt:
			h.violated("%s is %s after all has ended", id, r.State)
		}
		e.done = r.State == dedupe.Completed
	}
	now.Add(int64(31 * time.Second))
}

func (h *history) record(id string) dedupe.Record {
	r, err := h.records.Lookup(context.Background(), dedupe.Key("histories", id, ""))
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// TestHistoriesOfTheGatewayKeepThePromise: whatever the upstream does and whoever
// hangs up, over two gateways that share a store.
func TestHistoriesOfTheGatewayKeepThePromise(t *testing.T) {
	var now atomic.Int64
	records := memstore.New(func() time.Time { return time.Unix(0, now.Load()) })
	var current atomic.Pointer[history]
	up := func(w http.ResponseWriter, r *http.Request) error { return current.Load().upstream(w, r) }
	var gateways [2]*gateway
	for i := range gateways {
		store := newFakeStore()
		store.Store = records
		gateways[i] = newGatewayOn(t, store, historyRoute, up)
	}
	gateways[1].callDirectly() // the other one lets a call go when its time is over
	first := rand.Uint64N(1 << 32)
	for seed := first; seed < first+6 && !t.Failed(); seed++ {
		h := &history{
			t: t, seed: seed, gateways: gateways, records: records,
			rng: rand.New(rand.NewPCG(seed, 1)), events: make(map[string]*ledger),
		}
		for n := range 5 {
			h.events[fmt.Sprintf("evt_%d_%d", seed, n)] = new(ledger)
		}
		current.Store(h)
		for range 4 {
			h.round(&now)
		}
		h.calm = true
		h.round(&now)
		h.round(&now)
		for e := range maps.Values(h.events) {
			if !e.accepted {
				h.violated("an event was never accepted")
			}
		}
	}
}
