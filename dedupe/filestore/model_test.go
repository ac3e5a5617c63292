package filestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// model compares a store with the reference, step by step, on one clock.
type model struct {
	*fixture
	rand   *rand.Rand
	ref    *memstore.Store
	keys   []string
	leases map[string]time.Duration // the length of each key's last lease
	ttls   map[string]time.Duration
	tied   map[string]time.Time // when each binding ends
}

var (
	modelTokens = []string{"a", "b", "c"}
	modelTTLs   = []time.Duration{90 * time.Second, 10 * time.Minute, 3 * time.Hour}
	modelLeases = []time.Duration{time.Second, 30 * time.Second}
	modelSteps  = []time.Duration{time.Millisecond, time.Second, 20 * time.Second, 2 * time.Minute, time.Hour}
)

func TestStoreBehavesAsTheReference(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, seed, 6000) })
	}
}

func runModel(t *testing.T, seed uint64, steps int) {
	m := &model{
		fixture: newFixture(t), rand: rand.New(rand.NewPCG(seed, 1)),
		leases: map[string]time.Duration{}, ttls: map[string]time.Duration{}, tied: map[string]time.Time{},
	}
	m.maxSegment = 3000
	m.ref = memstore.New(m.clock.now)
	for i := range 12 {
		m.keys = append(m.keys, fmt.Sprint("s:", i))
	}
	for step := range steps {
		m.step()
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, step)
		}
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (m *model) step() {
	switch n := m.rand.IntN(100); {
	case n < 12:
		m.clock.advance(pick(m.rand, modelSteps))
	case n < 16:
		m.tick()
	case n < 18:
		m.SetSync(Sync(m.rand.IntN(2)))
	case n < 20:
		m.again()
	case n < 28:
		m.compareBind()
	default:
		m.compareEvent()
	}
}

// compareEvent does the same to an event in both stores.
func (m *model) compareEvent() {
	m.t.Helper()
	ctx := context.Background()
	key := pick(m.rand, m.keys)
	h := dedupe.Hold{
		Token: pick(m.rand, modelTokens), Attempt: 1 + m.rand.IntN(3), Doubted: m.rand.IntN(2) == 0,
		Lease: pick(m.rand, modelLeases), TTL: pick(m.rand, modelTTLs),
	}
	op, takeover := m.rand.IntN(7), m.rand.IntN(3) > 0
	do := func(s dedupe.Store) (answer any, err error) {
		switch op {
		case 0, 1:
			return s.Claim(ctx, key, h, takeover)
		case 2:
			return s.Renew(ctx, key, h)
		case 3:
			return nil, s.Release(ctx, key, h)
		case 4:
			return nil, s.Doubt(ctx, key, h)
		case 5:
			return s.Lookup(ctx, key)
		}
		return nil, s.Complete(ctx, key, dedupe.Done{Mark: uint16(h.Attempt), TTL: h.TTL})
	}
	before, _ := m.ref.Lookup(ctx, key)
	want, wantErr := do(m.ref)
	got, err := do(m.Store)
	if err != nil || wantErr != nil || got != want {
		m.t.Errorf("operation %d on %s with %+v: got %+v %v, want %+v %v", op, key, h, got, err, want, wantErr)
	}
	m.note(key, h, before)
	m.compare(key)
}

// note keeps what the reference does not tell: the length of the lease.
func (m *model) note(key string, h dedupe.Hold, before dedupe.Record) {
	now, _ := m.ref.Lookup(context.Background(), key)
	if now != before && now.Token == h.Token {
		m.leases[key], m.ttls[key] = h.Lease, h.TTL
	}
}

func (m *model) compare(key string) {
	m.t.Helper()
	want, _ := m.ref.Lookup(context.Background(), key)
	if got := m.lookup(key); got != want {
		m.t.Errorf("%s is %+v, want %+v", key, got, want)
	}
}

func (m *model) compareBind() {
	m.t.Helper()
	key, value, ttl := pick(m.rand, m.keys), pick(m.rand, modelTokens), pick(m.rand, modelTTLs)
	if now := m.clock.now(); !now.Before(m.tied[key]) {
		m.tied[key] = now.Add(ttl)
	}
	want, _ := m.ref.Bind(context.Background(), key, value, ttl)
	got, err := m.Bind(context.Background(), key, value, ttl)
	if err != nil || got != want {
		m.t.Errorf("%s is bound to %q %v, want %q", key, got, err, want)
	}
}

// again opens the store anew, and brings the reference to where that leads.
func (m *model) again() {
	m.t.Helper()
	if m.rand.IntN(2) == 0 {
		m.crash()
	} else {
		m.reopen()
	}
	m.maxSegment = 3000
	ctx := context.Background()
	old := m.ref
	m.ref = memstore.New(m.clock.now)
	for _, key := range m.keys {
		want, _ := old.Lookup(ctx, key)
		m.restore(key, want, m.lookup(key))
		m.compare(key)
		if left := m.tied[key].Sub(m.clock.now()); left > 0 {
			value, _ := old.Bind(ctx, key, "", time.Second)
			m.ref.Bind(ctx, key, value, left)
		}
	}
}

// restore puts want into the reference, its lease restarted in full. How long
// it lives may differ by what renewals need not write.
func (m *model) restore(key string, want, got dedupe.Record) {
	m.t.Helper()
	ctx := context.Background()
	if off := (want.Left - got.Left).Abs(); want.State == dedupe.InFlight && off <= m.ttls[key]/16 {
		want.Left = got.Left
	}
	h := dedupe.Hold{Token: want.Token, Attempt: want.Attempt, Doubted: want.Doubted, Lease: m.leases[key], TTL: want.Left}
	switch {
	case want.Left <= 0: // a renewal that was not written
	case want.State == dedupe.Completed:
		m.ref.Complete(ctx, key, dedupe.Done{Mark: want.Mark, TTL: want.Left})
	case want.State == dedupe.InFlight:
		m.ref.Renew(ctx, key, h)
	case want.State == dedupe.InDoubt:
		m.ref.Doubt(ctx, key, h)
	case want.State == dedupe.Failed:
		m.ref.Renew(ctx, key, h)
		m.ref.Release(ctx, key, h)
	}
}
