package caddymodule

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

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
	closed sync.Once
	// logger is that of the latest configuration: a reload closes the log files
	// of the one before.
	logger atomic.Pointer[zap.Logger]
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
	value, _, err := openStores.LoadOrNew(a.identity, func() (caddy.Destructor, error) {
		store, err := a.store.Open(a.logger)
		if err != nil {
			return nil, err
		}
		s := &openStore{store: store, reuse: newReuseMemory()}
		s.logger.Store(a.logger)
		options := dedupe.Options{Timeout: a.store.Timeout(), Observer: observing{&s.logger}}
		if a.store.Shared() { // a local store fails with the disk that a spool would be on
			options.Spool = a.spoolFor(a.identity)
		}
		s.gate = dedupe.New(store, options)
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	return &loan{value.(*openStore), a.identity}, nil
}

// spoolFor returns the spool of a store, or nil if there can be none.
func (a *App) spoolFor(identity string) dedupe.Spool {
	s, err := openSpool(filepath.Join(caddy.AppDataDir(), "webhook_dedupe_spool"), identity)
	if err != nil {
		a.logger.Warn("finished events that the store cannot be told of would not outlive this process", zap.Error(err))
		return nil
	}
	return s
}

// keep takes a second reference.
func (l *loan) keep() { openStores.LoadOrStore(l.identity, l.openStore) }

// giveBack gives one reference back. The last one closes the store.
func (l *loan) giveBack() {
	if _, err := openStores.Delete(l.identity); err != nil {
		l.logger.Load().Error("closing the store", zap.Error(err))
	}
}

// observing tells the log and the metrics what the gate does in the background.
type observing struct{ logger *atomic.Pointer[zap.Logger] }

func (o observing) ClaimLost(key string) {
	metrics.claimsLost.Inc()
	o.logger.Load().Error("another gateway took over an event whose delivery is still in the upstream here: its lease could not be renewed in time",
		zap.String("event", shortened(key)))
}

func (o observing) RenewFailed(key string, err error) {
	o.logger.Load().Warn("a lease could not be renewed; trying again", zap.String("event", shortened(key)), zap.Error(err))
}

func (o observing) Deferred(key string, kind dedupe.SettlementKind, err error) {
	metrics.settlementsWaiting.Inc()
	o.logger.Load().Warn("the store could not take an outcome; trying again",
		zap.String("event", shortened(key)), zap.String("kind", string(kind)), zap.Error(err))
}

func (o observing) Written(key string, kind dedupe.SettlementKind) {
	metrics.settlementsWaiting.Dec()
	o.logger.Load().Info("the store took an outcome that waited", zap.String("event", shortened(key)), zap.String("kind", string(kind)))
}

func (o observing) Spooled(key string) {
	metrics.settlementsWaiting.Dec()
	o.logger.Load().Error("a finished event could not be written to the store; the next start will write it", zap.String("event", shortened(key)))
}

func (o observing) SpoolFailed(err error) {
	o.logger.Load().Error("finished events that wait for the store would not outlive this process", zap.Error(err))
}

func (o observing) Lost(key string, kind dedupe.SettlementKind) {
	metrics.settlementsLost.Inc()
	o.logger.Load().Error("an outcome was never written to the store: a copy of this event may reach the upstream again",
		zap.String("event", shortened(key)), zap.String("kind", string(kind)))
}
