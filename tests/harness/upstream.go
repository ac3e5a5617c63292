package harness

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// EventHeader carries the event id of a test past the gateway, so that the
// upstream need not know how each sender names it.
const EventHeader = "X-Test-Event"

// Seen is a request as the upstream got it.
type Seen struct {
	Method string
	URI    string
	Header http.Header
	Body   []byte
	// Length is the Content-Length; -1 if the request was chunked.
	Length  int64
	Trailer http.Header
	// Word is what the gateway says of the delivery.
	Word string
}

// Upstream is a receiver that records what it gets and behaves as it is told.
type Upstream struct {
	// Addr is host:port.
	Addr string

	t      testing.TB
	server *httptest.Server
	ending chan struct{}

	mu         sync.Mutex
	plans      map[string][]Behaviour
	seen       map[string][]Seen
	active     map[string]int
	overlapped map[string]bool
}

// StartUpstream starts an upstream that answers 200 unless it is told otherwise.
func StartUpstream(t testing.TB) *Upstream {
	u := &Upstream{
		t: t, ending: make(chan struct{}), plans: make(map[string][]Behaviour),
		seen: make(map[string][]Seen), active: make(map[string]int), overlapped: make(map[string]bool),
	}
	u.server = httptest.NewServer(u)
	u.Addr = u.server.Listener.Addr().String()
	t.Cleanup(func() {
		close(u.ending)
		u.server.CloseClientConnections()
		u.server.Close()
	})
	return u
}

// On says how the upstream behaves at the first, second, ... request of an
// event. The last behaviour holds for all that follow.
func (u *Upstream) On(event string, steps ...Behaviour) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.plans[event] = steps
}

// ServeHTTP implements [http.Handler].
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event := r.Header.Get(EventHeader)
	step := u.begin(event)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = append(body, "\x00cut off: "+err.Error()...)
	}
	u.note(event, Seen{
		Method: r.Method, URI: r.RequestURI, Header: r.Header.Clone(), Body: body, Length: r.ContentLength,
		Trailer: r.Trailer, Word: r.Header.Get("Webhook-Dedupe"),
	})
	defer u.end(event)
	step(u, w, r)
}

func (u *Upstream) begin(event string) Behaviour {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.active[event]++; u.active[event] > 1 {
		u.overlapped[event] = true
	}
	plan := u.plans[event]
	if len(plan) == 0 {
		return Status(http.StatusOK)
	}
	return plan[min(len(u.seen[event]), len(plan)-1)]
}

func (u *Upstream) note(event string, s Seen) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen[event] = append(u.seen[event], s)
}

func (u *Upstream) end(event string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active[event]--
}

// Requests are the requests of an event so far.
func (u *Upstream) Requests(event string) []Seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen[event][:len(u.seen[event]):len(u.seen[event])]
}

// Words are what the gateway said of each request of an event.
func (u *Upstream) Words(event string) []string {
	words := []string{}
	for _, s := range u.Requests(event) {
		words = append(words, s.Word)
	}
	return words
}

// Total counts the requests of all events.
func (u *Upstream) Total() (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.seen {
		n += len(s)
	}
	return n
}

// Overlapped reports whether two requests of an event were ever under way at
// once.
func (u *Upstream) Overlapped(event string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.overlapped[event]
}

// Await waits until n requests of an event have come in whole.
func (u *Upstream) Await(t testing.TB, event string, n int) {
	t.Helper()
	Eventually(t, "request "+strconv.Itoa(n)+" of "+event+" is in the upstream", func() bool {
		return len(u.Requests(event)) >= n
	})
}

// AwaitIdle waits until no request of an event is in the upstream.
func (u *Upstream) AwaitIdle(t testing.TB, event string) {
	t.Helper()
	Eventually(t, event+" has left the upstream", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.active[event] == 0
	})
}

// ClosedPort returns an address that refuses connections.
func ClosedPort(t testing.TB) string { return net.JoinHostPort("127.0.0.1", FreePort(t)) }
