package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// fakeStore is a store in memory that can be away, and tells when it is opened
// and closed.
type fakeStore struct {
	dedupe.Store
	name   string
	opened atomic.Int64
	closed chan struct{}
	// closing, if set, is called before the store is closed.
	closing func()
	// The faults, while they are set.
	away, noOpen, noComplete, noBind atomic.Bool
	calls                            atomic.Int64
}

var errAway = errors.New("the store is away")

// fakeStores are all fake stores, by name.
var fakeStores sync.Map

func newFakeStore() *fakeStore {
	s := &fakeStore{
		Store:  memstore.New(nil),
		name:   fmt.Sprintf("test-%d", serial.Add(1)),
		closed: make(chan struct{}),
	}
	fakeStores.Store(s.name, s)
	return s
}

func (s *fakeStore) fault(also *atomic.Bool) error {
	s.calls.Add(1)
	if s.away.Load() || also != nil && also.Load() {
		return errAway
	}
	return nil
}

// heal ends all faults.
func (s *fakeStore) heal() {
	for _, fault := range []*atomic.Bool{&s.away, &s.noOpen, &s.noComplete, &s.noBind} {
		fault.Store(false)
	}
}

func (s *fakeStore) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	if err := s.fault(nil); err != nil {
		return dedupe.Record{}, err
	}
	return s.Store.Claim(ctx, key, h, takeover)
}

func (s *fakeStore) Complete(ctx context.Context, key string, d dedupe.Done) error {
	if err := s.fault(&s.noComplete); err != nil {
		return err
	}
	return s.Store.Complete(ctx, key, d)
}

func (s *fakeStore) Release(ctx context.Context, key string, h dedupe.Hold) error {
	if err := s.fault(nil); err != nil {
		return err
	}
	return s.Store.Release(ctx, key, h)
}

func (s *fakeStore) Doubt(ctx context.Context, key string, h dedupe.Hold) error {
	if err := s.fault(nil); err != nil {
		return err
	}
	return s.Store.Doubt(ctx, key, h)
}

func (s *fakeStore) Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error) {
	if err := s.fault(&s.noBind); err != nil {
		return "", err
	}
	return s.Store.Bind(ctx, key, value, ttl)
}

func (s *fakeStore) Close() error {
	if s.closing != nil {
		s.closing()
	}
	close(s.closed)
	return s.Store.Close()
}

// isClosed reports whether Close has been called.
func (s *fakeStore) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// state is what the store knows of an event.
func (s *fakeStore) state(key string) dedupe.State {
	r, err := s.Lookup(context.Background(), key)
	if err != nil {
		panic(err)
	}
	return r.State
}

// fakeStoreModule is the store module `test <name> [shared]`.
type fakeStoreModule struct {
	Name       string `json:"name"`
	SharedFlag bool   `json:"shared,omitempty"`
}

func (fakeStoreModule) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.webhook_dedupe.stores.test", New: func() caddy.Module { return new(fakeStoreModule) }}
}

func (m *fakeStoreModule) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.NextArg()
	m.Name = d.Val()
	m.SharedFlag = d.NextArg()
	return nil
}

func (m *fakeStoreModule) Identity() string         { return "test " + m.Name }
func (m *fakeStoreModule) Shared() bool             { return m.SharedFlag }
func (m *fakeStoreModule) Timeout() time.Duration   { return time.Second }
func (m *fakeStoreModule) Apply(dedupe.Store) error { return nil }

func (m *fakeStoreModule) Open(*zap.Logger) (dedupe.Store, error) {
	found, ok := fakeStores.Load(m.Name)
	if !ok {
		return nil, errAway
	}
	store := found.(*fakeStore)
	if store.noOpen.Load() {
		return nil, errAway
	}
	store.opened.Add(1)
	return store, nil
}

func init() { caddy.RegisterModule(fakeStoreModule{}) }
