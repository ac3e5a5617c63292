package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const program = "github.com/webhook-dedupe/caddy-webhook-dedupe/tests/bench/caddy"

// build builds Caddy with the module in it as xcaddy does, and returns its path.
func (r *rig) build(ctx context.Context) (string, error) {
	if r.program != "" {
		return filepath.Abs(r.program)
	}
	path := filepath.Join(r.dir, "caddy-under-test") // "caddy" is its data directory
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-w -s", "-tags", "nobadger,nomysql,nopgx", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Caddy: %w\n%s", err, output)
	}
	return path, nil
}

// caddySetup is a configuration of Caddy.
type caddySetup struct {
	store string            // as a Caddyfile says it; empty: no gateway
	log   bool              // write the delivery log
	sites map[string]string // what stands in front of the upstream, by sender
	proxy string            // lines of reverse_proxy
}

// gateway is a setup with a site for each of the senders.
func gateway(store string, log bool, senders ...string) caddySetup {
	s := caddySetup{store: store, log: log, sites: make(map[string]string)}
	for _, sender := range senders {
		s.sites[sender] = route(sender, "")
	}
	return s
}

// buffered is s with a proxy that holds bodies, which lets Go send a request in
// one piece.
func buffered(s caddySetup) caddySetup {
	s.proxy = "request_buffers 64KiB"
	return s
}

// route is a route for a sender. The first one's source has the usual length.
func route(sender, lines string) string {
	source := "shop"
	if sender != "github" {
		source = "shop-" + sender
	}
	return fmt.Sprintf("webhook_dedupe %s {\n\t\tsource %s\n\t\tsecret %s\n\t\t%s\n\t}", sender, source, secret, lines)
}

// caddyfile writes the configuration. All setups log alike, but for the level:
// at WARN nothing is logged for a delivery that goes well.
func (r *rig) caddyfile(s caddySetup, admin, log string, addresses map[string]string) string {
	var b strings.Builder
	level := "WARN"
	if s.log {
		level = "INFO"
	}
	fmt.Fprintf(&b, "{\n\tadmin %s\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\tlevel %s\n\t\toutput file %s {\n\t\t\troll_disabled\n\t\t}\n\t}\n",
		admin, level, log)
	if s.store != "" {
		fmt.Fprintf(&b, "\twebhook_dedupe {\n\t\tstore %s\n\t}\n", s.store)
	}
	b.WriteString("}\n")
	for _, sender := range slices.Sorted(maps.Keys(s.sites)) {
		_, port, _ := net.SplitHostPort(addresses[sender])
		fmt.Fprintf(&b, "http://:%s {\n\tbind 127.0.0.1\n\t%s\n", port, s.sites[sender])
		if !strings.Contains(s.sites[sender], "respond") {
			fmt.Fprintf(&b, "\treverse_proxy %s {\n\t\t%s\n\t}\n", r.upstream, s.proxy)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// startCaddy starts Caddy with a setup. What it writes goes to dir.
func (r *rig) startCaddy(s caddySetup, dir string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	srv := &server{admin: freeAddress(), sites: make(map[string]string)}
	for sender := range s.sites {
		srv.sites[sender] = freeAddress()
	}
	log, config := filepath.Join(dir, "caddy.log"), filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(r.caddyfile(s, srv.admin, log, srv.sites)), 0o600); err != nil {
		return nil, err
	}
	var ready string
	for _, ready = range srv.sites {
		break
	}
	p, err := r.start(serverCore, ready, r.caddy, "run", "--config", config, "--adapter", "caddyfile")
	if err != nil {
		logged, _ := os.ReadFile(log)
		return nil, fmt.Errorf("%w\n%s", err, logged)
	}
	srv.proc, srv.pid = p, p.cmd.Process.Pid // taskset becomes the program
	return srv, nil
}

// loggedErrors counts the error lines of all Caddy logs, and returns the first.
func (r *rig) loggedErrors() (n int, first string) {
	logs, _ := filepath.Glob(filepath.Join(r.dir, "*", "caddy.log"))
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			if bytes.Contains(line, []byte(`"level":"error"`)) {
				if n++; n == 1 {
					first = string(bytes.TrimSpace(line))
				}
			}
		}
	}
	return n, first
}
