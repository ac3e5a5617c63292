package caddymodule

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// openStores are the stores that are open in this process, by their identity. A
// reload calls Cleanup on the old configuration while its requests are still in
// flight, so each delivery holds a reference of its own.
var openStores = caddy.NewUsagePool()

// openStore is an open store and what goes with it over reloads.
type openStore struct {
	store  dedupe.Store
	gate   *dedupe.Gate
	reuse  *reuseMemory
	logger *zap.Logger
	closed sync.Once
}

// Destruct implements [caddy.Destructor], when the last reference is gone.
func (s *openStore) Destruct() error {
	ctx, cancel := exit.budget()
	defer cancel()
	return s.close(ctx)
}

// close writes what still waits, for as long as ctx lasts, and closes the store.
func (s *openStore) close(ctx context.Context) (err error) {
	s.closed.Do(func() { err = s.gate.Close(ctx) })
	return err
}

// loan is a reference to an open store. It is given back as often as it is kept,
// and once more.
type loan struct {
	*openStore
	identity string
}

// borrow returns the open store of this configuration, and opens it if need be:
// routes may be served before the app has been started.
func (a *App) borrow() (*loan, error) {
	identity := a.store.Identity()
	value, _, err := openStores.LoadOrNew(identity, func() (caddy.Destructor, error) {
		store, err := a.store.Open(a.logger)
		if err != nil {
			return nil, err
		}
		gate := dedupe.New(store, dedupe.Options{Timeout: a.store.Timeout(), Observer: observing{a.logger}})
		return &openStore{store: store, gate: gate, reuse: newReuseMemory(), logger: a.logger}, nil
	})
	if err != nil {
		return nil, err
	}
	return &loan{value.(*openStore), identity}, nil
}

// keep takes a second reference.
func (l *loan) keep() { openStores.LoadOrStore(l.identity, l.openStore) }

// giveBack gives one reference back. The last one closes the store.
func (l *loan) giveBack() {
	if _, err := openStores.Delete(l.identity); err != nil {
		l.logger.Error("closing the store", zap.Error(err))
	}
}

// observing tells the log and the metrics what the gate does in the background.
type observing struct{ logger *zap.Logger }

func (o observing) ClaimLost(key string) {
	metrics.claimsLost.Inc()
	o.logger.Error("another gateway took over an event whose delivery is still in the upstream here: its lease could not be renewed in time",
		zap.String("event", shortened(key)))
}

func (o observing) RenewFailed(key string, err error) {
	o.logger.Warn("a lease could not be renewed; trying again", zap.String("event", shortened(key)), zap.Error(err))
}

func (o observing) Deferred(key string, kind dedupe.SettlementKind, err error) {
	metrics.settlementsWaiting.Inc()
	o.logger.Warn("the store could not take an outcome; trying again",
		zap.String("event", shortened(key)), zap.String("kind", string(kind)), zap.Error(err))
}

func (o observing) Written(key string, kind dedupe.SettlementKind) {
	metrics.settlementsWaiting.Dec()
	o.logger.Info("the store took an outcome that waited", zap.String("event", shortened(key)), zap.String("kind", string(kind)))
}

func (o observing) Lost(key string, kind dedupe.SettlementKind) {
	metrics.settlementsLost.Inc()
	o.logger.Error("an outcome was never written to the store: a copy of this event may reach the upstream again",
		zap.String("event", shortened(key)), zap.String("kind", string(kind)))
}
