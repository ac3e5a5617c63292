package dedupe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// policy is a route as it is by default.
var policy = dedupe.Policy{TTL: 7 * 24 * time.Hour, Lease: 30 * time.Second, Wait: 5 * time.Second}

// event is a delivery of the one event that most tests need.
var event = dedupe.Event{Key: dedupe.Key("orders", "evt_1", ""), Mark: 7}

// process is a Gate with a faulty line to a store that it may share.
type process struct {
	t *testing.T
	*dedupe.Gate
	line *line
	seen *seen
}

// start starts a process; it is closed when the test ends.
func start(t *testing.T, store dedupe.Store) process {
	p := process{t: t, line: &line{store: store, faults: map[string][]fault{}, always: map[string]fault{}, asked: map[string]int{}}, seen: &seen{}}
	p.Gate = dedupe.New(p.line, dedupe.Options{Observer: p.seen})
	t.Cleanup(func() {
		if !p.line.isClosed() {
			p.line.mend()
			p.Close(t.Context())
		}
	})
	return p
}

// alone is a process with a store of its own.
func alone(t *testing.T) process { return start(t, memstore.New(nil)) }

func (p process) admit(e dedupe.Event, with dedupe.Policy) dedupe.Verdict {
	p.t.Helper()
	v, err := p.Admit(context.Background(), e, with)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// owns admits the event and wants it delivered as result.
func (p process) owns(result dedupe.Result) *dedupe.Claim {
	p.t.Helper()
	v := p.admit(event, policy)
	if v.Result != result || v.Claim == nil {
		p.t.Fatalf("got %+v, want a claim as %s", v, result)
	}
	return v.Claim
}

// answers admits the event and wants it answered with result, without waiting.
func (p process) answers(result dedupe.Result) dedupe.Verdict {
	p.t.Helper()
	hurried := policy
	hurried.Wait = 0
	v := p.admit(event, hurried)
	if v.Result != result || v.Claim != nil {
		p.t.Fatalf("got %+v, want %s and no claim", v, result)
	}
	synctest.Wait() // until nobody here watches the event
	return v
}

func (p process) record() dedupe.Record {
	p.t.Helper()
	r, err := p.line.to().Lookup(context.Background(), event.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p process) settle(c *dedupe.Claim, o dedupe.Outcome) {
	p.t.Helper()
	if err := c.Settle(o); err != nil {
		p.t.Fatal(err)
	}
}

// copies admits n copies at once and returns what they were told, when all have
// been. The returned function waits for them.
func (p process) copies(ctx context.Context, n int, e dedupe.Event, with dedupe.Policy) func() []dedupe.Verdict {
	verdicts := make([]dedupe.Verdict, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			v, err := p.Admit(ctx, e, with)
			if err != nil {
				p.t.Error(err)
			}
			verdicts[i] = v
		})
	}
	return func() []dedupe.Verdict { all.Wait(); return verdicts }
}

// pass lets d pass on the bubble's clock.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// fault is what happens to one operation on its way.
type fault int

const (
	none        fault = iota
	lostRequest       // never carried out, and an error
	lostReply         // carried out, and an error
	silence           // never carried out, and no answer until the time-out
	corrupt           // the record cannot be read
)

var errAway = errors.New("the store is away")

// line is the way to a store, and what goes wrong on it.
type line struct {
	store dedupe.Store

	mu     sync.Mutex
	faults map[string][]fault // for the next operations
	always map[string]fault   // for all others
	asked  map[string]int
	tokens []string
	late   []string // operations after Close
	closed bool
}

// next sets what happens to the next operations of a kind.
func (l *line) next(op string, f ...fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[op] = append(l.faults[op], f...)
}

// from sets what happens to all operations of some kinds, or of every kind.
func (l *line) from(f fault, ops ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ops) == 0 {
		ops = []string{"claim", "renew", "complete", "release", "doubt", "lookup", "bind"}
	}
	for _, op := range ops {
		l.always[op] = f
	}
}

func (l *line) mend() { l.from(none) }

// lead leads the line to another store.
func (l *line) lead(store dedupe.Store) { l.mu.Lock(); defer l.mu.Unlock(); l.store = store }

func (l *line) to() dedupe.Store { l.mu.Lock(); defer l.mu.Unlock(); return l.store }

func (l *line) count(op string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[op]
}

func (l *line) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *line) do(ctx context.Context, op, token string, apply func() error) error {
	l.mu.Lock()
	l.asked[op]++
	if op == "claim" {
		l.tokens = append(l.tokens, token)
	}
	if l.closed {
		l.late = append(l.late, op)
	}
	f := l.always[op]
	if queue := l.faults[op]; len(queue) > 0 {
		f, l.faults[op] = queue[0], queue[1:]
	}
	l.mu.Unlock()
	switch f {
	case lostRequest:
		return errAway
	case lostReply:
		apply()
		return errAway
	case silence:
		<-ctx.Done()
		return ctx.Err()
	case corrupt:
		return fmt.Errorf("%s: %w", op, dedupe.ErrCorrupt)
	}
	return apply()
}

func (l *line) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (r dedupe.Record, err error) {
	err = l.do(ctx, "claim", h.Token, func() (err error) { r, err = l.to().Claim(ctx, key, h, takeover); return err })
	if err != nil {
		return dedupe.Record{}, err
	}
	return r, nil
}

func (l *line) Renew(ctx context.Context, key string, h dedupe.Hold) (ok bool, err error) {
	err = l.do(ctx, "renew", h.Token, func() (err error) { ok, err = l.to().Renew(ctx, key, h); return err })
	return ok && err == nil, err
}

func (l *line) Complete(ctx context.Context, key string, d dedupe.Done) error {
	return l.do(ctx, "complete", "", func() error { return l.to().Complete(ctx, key, d) })
}

func (l *line) Release(ctx context.Context, key string, h dedupe.Hold) error {
	return l.do(ctx, "release", h.Token, func() error { return l.to().Release(ctx, key, h) })
}

func (l *line) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	return l.do(ctx, "doubt", h.Token, func() error { return l.to().Doubt(ctx, key, h) })
}

func (l *line) Lookup(ctx context.Context, key string) (r dedupe.Record, err error) {
	err = l.do(ctx, "lookup", "", func() (err error) { r, err = l.to().Lookup(ctx, key); return err })
	return r, err
}

func (l *line) Bind(ctx context.Context, key, value string, ttl time.Duration) (bound string, err error) {
	err = l.do(ctx, "bind", "", func() (err error) { bound, err = l.to().Bind(ctx, key, value, ttl); return err })
	return bound, err
}

func (l *line) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// seen is what an Observer was told: "lost claim", "renew failed", or a word
// and the kind of a settlement.
type seen struct {
	mu   sync.Mutex
	what []string
}

func (s *seen) add(what string) { s.mu.Lock(); defer s.mu.Unlock(); s.what = append(s.what, what) }

func (s *seen) all() []string { s.mu.Lock(); defer s.mu.Unlock(); return slices.Clone(s.what) }

func (s *seen) count(what string) (n int) {
	for _, w := range s.all() {
		if w == what {
			n++
		}
	}
	return n
}

func (s *seen) ClaimLost(string)                                    { s.add("claim lost") }
func (s *seen) RenewFailed(string, error)                           { s.add("renew failed") }
func (s *seen) Deferred(_ string, k dedupe.SettlementKind, _ error) { s.add("deferred " + string(k)) }
func (s *seen) Written(_ string, k dedupe.SettlementKind)           { s.add("written " + string(k)) }
func (s *seen) Spooled(string)                                      { s.add("spooled") }
func (s *seen) SpoolFailed(error)                                   { s.add("spool failed") }
func (s *seen) Lost(_ string, k dedupe.SettlementKind)              { s.add("lost " + string(k)) }
