package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// appName is the app's name in a configuration.
const appName = "webhook_dedupe"

// App holds the store that all webhook_dedupe routes of a configuration share.
// It need not be configured: without it, events are kept in a file store in
// Caddy's data directory.
//
// The store is opened when the configuration starts and survives reloads. An
// unreachable Redis does not keep Caddy from starting: until it is back,
// deliveries are answered with 503.
type App struct {
	// Where events are kept. Default: the file store.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=http.webhook_dedupe.stores inline_key=type"`

	// How many bytes of request bodies may be held in memory at once, over all
	// routes; beyond it senders get 503. Default: 268435456 (256MiB).
	MaxBuffered int64 `json:"max_buffered,omitempty"`

	store    StoreModule
	identity string // of the store
	logger   *zap.Logger
	sources  map[string]sourceClaim
	lent     atomic.Pointer[loan]
	ctx      caddy.Context
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appName, New: func() caddy.Module { return new(App) }}
}

// Provision implements [caddy.Provisioner]. It opens nothing: `caddy validate`
// must work beside a running server.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	a.sources = make(map[string]sourceClaim)
	a.MaxBuffered = or(a.MaxBuffered, defaultMaxBuffered)
	if a.MaxBuffered < 0 {
		return errors.New("max_buffered must not be negative")
	}
	if a.StoreRaw == nil {
		a.StoreRaw = json.RawMessage(`{"type":"file"}`)
	}
	module, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("loading the store: %w", err)
	}
	store, ok := module.(StoreModule)
	if !ok {
		return fmt.Errorf("module %T is no store", module)
	}
	a.store, a.identity = store, store.Identity()
	a.ctx = ctx
	return exit.listen(ctx)
}

// Start implements [caddy.App]. It opens the store, or takes over the one that
// the configuration before this one has opened.
func (a *App) Start() error {
	tellPunctual(a.ctx)
	if len(a.sources) > 0 { // else no route uses the store
		lent, err := a.open()
		if err != nil {
			return err
		}
		a.lent.Store(lent)
	}
	return inForce.succeed(a)
}

// apply makes what this app configures for the process hold.
func (a *App) apply() error {
	exit.allow(gracePeriod(a.ctx))
	buffers.allow(a.MaxBuffered)
	lent := a.lent.Load()
	if lent == nil {
		return nil
	}
	lent.logger.Store(a.logger)
	return a.store.Apply(lent.store)
}

// Stop implements [caddy.App]. The store stays open for the deliveries that are
// still under way.
func (a *App) Stop() error { return nil }

// Cleanup implements [caddy.CleanerUpper]. Requests of this configuration may
// still be in flight: each has borrowed the store for itself.
func (a *App) Cleanup() error {
	inForce.retire(a)
	if lent := a.lent.Swap(nil); lent != nil {
		lent.giveBack()
	}
	return nil
}

// sourceClaim is a route's use of a source.
type sourceClaim struct {
	route   string
	written bool   // the route names its source itself
	same    string // equal for routes that may share a source
}

// claimSource refuses two routes that would take each other's events for
// duplicates by accident.
func (a *App) claimSource(source string, c sourceClaim) error {
	before, taken := a.sources[source]
	switch {
	case !taken:
		a.sources[source] = c
	case !c.written || !before.written:
		return fmt.Errorf("route %s has the same source; give each its own, or write `source` out in both if they shall share their events", before.route)
	case c.same != before.same:
		return errors.New("another route has the same source with another scheme, other secrets or another on_reused_id")
	}
	return nil
}

// Interface guards.
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
