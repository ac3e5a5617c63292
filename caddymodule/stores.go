package caddymodule

import (
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// StoreModule is what a module in the namespace http.webhook_dedupe.stores
// implements: where events are kept. It is provisioned for every configuration
// and opened at most once for all that name the same store.
type StoreModule interface {
	caddy.Module

	// Identity names the store that the module stands for, without any secret.
	// Configurations with equal identities share one open store.
	Identity() string

	// Shared reports whether other gateways may use the same store.
	Shared() bool

	// Timeout bounds one operation.
	Timeout() time.Duration

	// Open opens the store. It is not called while the configuration is only
	// validated.
	Open(logger *zap.Logger) (dedupe.Store, error)

	// Apply brings what this module configures to a store that may have been
	// opened for an earlier configuration.
	Apply(store dedupe.Store) error
}

// MemoryStore keeps events in memory. It forgets them when Caddy exits, and is
// for trials only.
type MemoryStore struct{}

// CaddyModule returns the Caddy module information.
func (MemoryStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.webhook_dedupe.stores.memory", New: func() caddy.Module { return new(MemoryStore) }}
}

// Provision implements [caddy.Provisioner].
func (MemoryStore) Provision(ctx caddy.Context) error {
	ctx.Logger().Warn("the memory store forgets all events when Caddy exits: copies that come after that reach the upstream again")
	return nil
}

// Identity implements [StoreModule].
func (MemoryStore) Identity() string { return "memory" }

// Shared implements [StoreModule].
func (MemoryStore) Shared() bool { return false }

// Timeout implements [StoreModule].
func (MemoryStore) Timeout() time.Duration { return time.Second }

// Open implements [StoreModule].
func (MemoryStore) Open(*zap.Logger) (dedupe.Store, error) { return memstore.New(nil), nil }

// Apply implements [StoreModule].
func (MemoryStore) Apply(dedupe.Store) error { return nil }

// Interface guards.
var (
	_ StoreModule       = (*MemoryStore)(nil)
	_ caddy.Provisioner = (*MemoryStore)(nil)
)
