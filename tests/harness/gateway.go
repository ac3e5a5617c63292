package harness

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Gateway is a Caddy process with the gateway in it. It has a data directory of
// its own, which outlives restarts.
type Gateway struct {
	// URL is the site's, without a path.
	URL string

	t      testing.TB
	dir    string
	addr   string
	admin  string
	global string
	server string
	site   string
	env    []string

	mu      sync.Mutex
	process *process
	past    []string // what earlier processes printed
}

// Option changes a Gateway before it starts.
type Option func(*Gateway)

// WithEnv sets environment variables, given as NAME=value.
func WithEnv(env ...string) Option {
	return func(g *Gateway) { g.env = append(g.env, env...) }
}

// WithGlobal adds lines to the Caddyfile's global options.
func WithGlobal(lines ...string) Option {
	return func(g *Gateway) { g.global += "\n" + strings.Join(lines, "\n") }
}

// WithServer adds lines to the Caddyfile's options of the HTTP server.
func WithServer(lines ...string) Option {
	return func(g *Gateway) { g.server += "\n" + strings.Join(lines, "\n") }
}

// WithTLS makes the site's address https, with a certificate of Caddy's own.
func WithTLS() Option {
	return func(g *Gateway) {
		g.URL = "https://" + g.addr
		g.site = "tls internal"
		WithGlobal("skip_install_trust", "auto_https disable_redirects")(g)
	}
}

// WithStore sets the store, as a Caddyfile says it: "memory". Without it, the
// gateway uses its default.
func WithStore(store string) Option {
	return WithGlobal("webhook_dedupe {", "store "+store, "}")
}

// WithRedis sets a Redis store at the address.
func WithRedis(addr string, lines ...string) Option {
	return WithStore("redis {\naddress " + addr + "\n" + strings.Join(lines, "\n") + "\n}")
}

// NewGateway prepares a gateway that is not started yet.
func NewGateway(t testing.TB, options ...Option) *Gateway {
	t.Helper()
	g := &Gateway{t: t, dir: t.TempDir(), addr: "127.0.0.1:" + FreePort(t), admin: "localhost:" + FreePort(t)}
	g.URL = "http://" + g.addr
	for _, o := range options {
		o(g)
	}
	t.Cleanup(g.finish)
	return g
}

// Configure replaces the global options, for the reloads and starts that follow.
func (g *Gateway) Configure(options ...Option) {
	g.global, g.server = "", ""
	for _, o := range options {
		o(g)
	}
}

// StartGateway starts a gateway whose site has these lines and waits until it
// serves.
func StartGateway(t testing.TB, site string, options ...Option) *Gateway {
	t.Helper()
	g := NewGateway(t, options...)
	g.Start(site)
	return g
}

// Start starts the process with a new site, or with the last one if site is
// empty.
func (g *Gateway) Start(site string) {
	g.t.Helper()
	file := g.ConfigFile()
	if site != "" {
		if err := os.WriteFile(file, []byte(g.Caddyfile(site)), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	p := startProcess(g.t, g.dir, g.environment(), program, "run", "--config", file, "--adapter", "caddyfile")
	g.mu.Lock()
	if g.process != nil {
		g.past = append(g.past, g.process.output()...)
	}
	g.process = p
	g.mu.Unlock()
	Eventually(g.t, "the gateway serves", func() bool {
		if !p.running() {
			g.t.Fatalf("the gateway did not start:\n%s", p.tail())
		}
		return strings.Contains(strings.Join(p.output(), "\n"), `"serving initial configuration"`) && g.greets()
	})
}

// greets reports whether the gateway has the certificate that it needs, if any.
func (g *Gateway) greets() bool {
	if !strings.HasPrefix(g.URL, "https:") {
		return true
	}
	conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// ConfigFile is the path of the configuration that the process was started with.
func (g *Gateway) ConfigFile() string { return filepath.Join(g.dir, "Caddyfile") }

// StoreDirectory is where the default store keeps its events.
func (g *Gateway) StoreDirectory() string { return filepath.Join(g.dir, "caddy", "webhook_dedupe") }

func (g *Gateway) environment() []string {
	// Without the last one, the race detector pauses a second at every exit.
	return append([]string{"XDG_DATA_HOME=" + g.dir, "XDG_CONFIG_HOME=" + g.dir, "HOME=" + g.dir, "GORACE=atexit_sleep_ms=20"}, g.env...)
}

// Caddyfile is the whole configuration around a site's lines. It speaks HTTP/2
// without TLS, too.
func (g *Gateway) Caddyfile(site string) string {
	return fmt.Sprintf(`{
	admin %s
	persist_config off
	servers {
		protocols h1 h2 h2c
		%s
	}
	%s
}
%s {
	%s
	%s
}
`, g.admin, g.server, g.global, g.URL, g.site, site)
}

// Run runs another command of the program in the gateway's surroundings and
// returns what it printed.
func (g *Gateway) Run(args ...string) (output string, ok bool) {
	g.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), g.environment()...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

// Write puts a file beside the gateway's configuration and returns its path.
func (g *Gateway) Write(name, content string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// Kill ends the process as a crash does.
func (g *Gateway) Kill() { g.current().kill() }

// Terminate asks the process to end and waits until it has.
func (g *Gateway) Terminate() { g.t.Helper(); g.current().terminate() }

// BeginTermination asks the process to end and does not wait.
func (g *Gateway) BeginTermination() { g.current().signal(syscall.SIGTERM) }

// Pause freezes the process, as a suspended virtual machine is.
func (g *Gateway) Pause() { g.current().signal(syscall.SIGSTOP) }

// Continue thaws the process.
func (g *Gateway) Continue() { g.current().signal(syscall.SIGCONT) }

// Running reports whether the process lives.
func (g *Gateway) Running() bool { return g.current().running() }

// Host is the site's host and port.
func (g *Gateway) Host() string { return g.addr }

// Listens reports whether the gateway accepts connections.
func (g *Gateway) Listens() bool {
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (g *Gateway) current() *process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.process
}

// finish ends the process in good order and looks at what it left behind.
func (g *Gateway) finish() {
	p := g.current()
	if p == nil {
		return
	}
	if g.t.Failed() {
		p.kill() // it may wait for what a failed test has left in the upstream
	}
	if p.running() {
		p.signal(syscall.SIGCONT)
		p.terminate()
	}
	for _, line := range g.Output() {
		for _, bad := range []string{"DATA RACE", "panic:", "fatal error:", "a handler panicked"} {
			if strings.Contains(line, bad) {
				g.t.Errorf("the gateway's output holds %q", bad)
			}
		}
	}
	if g.t.Failed() {
		g.t.Logf("the gateway's last words:\n%s", p.tail())
	}
}
