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

// openStores are the stores that are open in this process, by their identity.
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

// loan is a configuration's reference to an open store. It has users, the
// configuration itself among them, and is given back with the last: a reload
// calls Cleanup while requests are still in flight.
type loan struct {
	*openStore
	identity string
	users    atomic.Int64
}

// borrow returns the open store of this configuration, and makes the caller a
// user of it.
func (a *App) borrow() (*loan, error) {
	if l := a.lent.Load(); l != nil && l.join() {
		return l, nil
	}
	return a.open() // routes may be served before the app has started, and after it has ended
}

// open takes a reference to the store, and opens it if need be.
func (a *App) open() (*loan, error) {
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
	l := &loan{openStore: value.(*openStore), identity: a.identity}
	l.users.Store(1)
	return l, nil
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

// join adds a user, unless the loan has been given back.
func (l *loan) join() bool {
	for n := l.users.Load(); n > 0; n = l.users.Load() {
		if l.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// keep adds a user. The caller is one.
func (l *loan) keep() { l.users.Add(1) }

// giveBack takes a user away. With the last one the loan is given back, and with
// the last loan the store is closed.
func (l *loan) giveBack() {
	if l.users.Add(-1) > 0 {
		return
	}
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
