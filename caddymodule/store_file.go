package caddymodule

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
)

// FileStore keeps events in a local directory, for a single gateway. It survives
// restarts and crashes; two gateways cannot share it.
type FileStore struct {
	// The directory. In a container it must be on a volume, or every new container
	// starts with no memory. Default: `webhook_dedupe` in Caddy's data directory.
	Directory string `json:"directory,omitempty"`

	// When written records are forced to the disk: `everysec`, so that a power cut
	// may cost the last second, or `always`, before anything is answered. A crash
	// of Caddy costs nothing either way. Default: `everysec`.
	Sync string `json:"sync,omitempty"`

	sync filestore.Sync
	slog *slog.Logger
}

// CaddyModule returns the Caddy module information.
func (FileStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.webhook_dedupe.stores.file", New: func() caddy.Module { return new(FileStore) }}
}

// Provision implements [caddy.Provisioner].
func (s *FileStore) Provision(ctx caddy.Context) error {
	s.slog = ctx.Slogger()
	if s.Directory == "" {
		s.Directory = filepath.Join(caddy.AppDataDir(), "webhook_dedupe")
	}
	directory, err := resolve(s.Directory)
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if s.Directory, err = filepath.Abs(directory); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	switch or(s.Sync, "everysec") {
	case "everysec":
		s.sync = filestore.EverySec
	case "always":
		s.sync = filestore.Always
	default:
		return fmt.Errorf("sync %q is neither everysec nor always", s.Sync)
	}
	return nil
}

// Identity implements [StoreModule].
func (s *FileStore) Identity() string { return "file " + s.Directory }

// Shared implements [StoreModule].
func (*FileStore) Shared() bool { return false }

// Timeout implements [StoreModule]. A busy disk may take long over one write.
func (*FileStore) Timeout() time.Duration { return 5 * time.Second }

// Open implements [StoreModule].
func (s *FileStore) Open(*zap.Logger) (dedupe.Store, error) {
	return filestore.Open(s.Directory, filestore.Options{Sync: s.sync, Logger: s.slog})
}

// Apply implements [StoreModule].
func (s *FileStore) Apply(store dedupe.Store) error {
	store.(*filestore.Store).SetSync(s.sync)
	return nil
}

// Interface guards.
var (
	_ StoreModule       = (*FileStore)(nil)
	_ caddy.Provisioner = (*FileStore)(nil)
)
