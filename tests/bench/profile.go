package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profile writes profiles of each variant that Caddy serves, under load: of CPU
// time and of allocations.
func (r *rig) profile(ctx context.Context, chosen []variant, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, v := range chosen {
		w := &row{variant: v}
		if err := r.prepare(ctx, w); errors.Is(err, errNoNginx) {
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		s := r.servers[v.server]
		if s.admin == "" {
			continue
		}
		fetched := make(chan error, 2)
		for kind, path := range map[string]string{"cpu": "profile", "allocs": "allocs"} {
			file := filepath.Join(dir, v.Name+"."+kind)
			go func() { fetched <- r.fetchProfile(ctx, s, path, file) }()
		}
		out, err := r.run(ctx, w)
		if err := errors.Join(err, <-fetched, <-fetched); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f requests/s while the profiles were taken\n", v.Name, throughput(out))
	}
	return nil
}

func (r *rig) fetchProfile(ctx context.Context, s *server, kind, file string) error {
	seconds := max(1, int(r.duration.Seconds()))
	url := fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%d", s.admin, kind, seconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
