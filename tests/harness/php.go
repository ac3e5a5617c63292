package harness

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// PHP is a server that runs a script: mostly the old shop of testdata/shop.php.
type PHP struct {
	// Site is the part of a Caddy site that hands requests to it.
	Site string

	t       testing.TB
	dir     string
	listen  func() (net.Conn, error)
	command []string
	process *process
}

// Shops are the ways to run the shop: PHP's own server behind reverse_proxy, and
// php-fpm behind php_fastcgi.
var Shops = map[string]func(testing.TB) *PHP{"reverse_proxy": StartPHPServer, "php_fastcgi": StartFPM}

// StartPHPServer runs the shop in PHP's own HTTP server.
func StartPHPServer(t testing.TB) *PHP {
	t.Helper()
	p := newPHP(t, "testdata/shop.php")
	addr := "127.0.0.1:" + FreePort(t)
	p.Site = "reverse_proxy " + addr
	p.listen = func() (net.Conn, error) { return net.Dial("tcp", addr) }
	p.command = []string{"php", "-S", addr, "-t", p.dir, filepath.Join(p.dir, "index.php")}
	p.Start()
	return p
}

// StartFPM runs the shop in php-fpm, on a socket of its own.
func StartFPM(t testing.TB) *PHP {
	t.Helper()
	return StartScript(t, "testdata/shop.php", 4)
}

// StartScript runs a script of one's own in php-fpm, in so many processes. files
// are put beside it, given as name and content.
func StartScript(t testing.TB, script string, children int, files ...string) *PHP {
	t.Helper()
	p := newPHP(t, script)
	for i := 0; i < len(files); i += 2 {
		p.write(files[i], files[i+1])
	}
	socket := filepath.Join(p.dir, "fpm.sock")
	if len(socket) > 100 { // there is a limit to the path of a socket
		short, err := os.MkdirTemp("", "fpm")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(short) })
		socket = filepath.Join(short, "fpm.sock")
	}
	config := fmt.Sprintf("[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nlisten = %s\npm = static\npm.max_children = %d\nclear_env = no\n", socket, children)
	args := []string{"--nodaemonize", "--fpm-config", filepath.Join(p.dir, "fpm.conf")}
	if os.Getuid() == 0 {
		// The test's directories are its own user's.
		config += "user = root\ngroup = root\n"
		args = append(args, "--allow-to-run-as-root")
	}
	p.write("fpm.conf", config)
	p.Site = fmt.Sprintf("root * %s\nphp_fastcgi unix/%s", p.dir, socket)
	p.listen = func() (net.Conn, error) { return net.Dial("unix", socket) }
	p.command = append([]string{findFPM(t)}, args...)
	p.Start()
	return p
}

// findFPM finds php-fpm, which Debian names after its version.
func findFPM(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("php-fpm"); err == nil {
		return path
	}
	for _, pattern := range []string{"/usr/sbin/php-fpm*", "/usr/local/sbin/php-fpm*", "/usr/bin/php-fpm*"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatal("this test needs php-fpm")
	return ""
}

func newPHP(t testing.TB, script string) *PHP {
	t.Helper()
	p := &PHP{t: t, dir: t.TempDir()}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	p.write("index.php", string(text))
	t.Cleanup(func() {
		if p.process != nil {
			p.process.kill()
		}
	})
	return p
}

// Start starts the server, again after [PHP.Kill], and waits until it listens.
func (p *PHP) Start() {
	p.t.Helper()
	p.process = startProcess(p.t, p.dir, []string{"PHP_CLI_SERVER_WORKERS=4"}, p.command[0], p.command[1:]...)
	Eventually(p.t, "PHP listens", func() bool {
		if !p.process.running() {
			p.t.Fatalf("PHP did not start:\n%s", p.process.tail())
		}
		conn, err := p.listen()
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// Kill ends the server and what it is doing.
func (p *PHP) Kill() {
	_ = syscall.Kill(-p.process.cmd.Process.Pid, syscall.SIGKILL)
	<-p.process.exited
}

// Hold makes the shop slow for an event, until Release.
func (p *PHP) Hold(event string) { p.write("hold-"+event, "") }

// Release ends Hold.
func (p *PHP) Release(event string) { p.remove("hold-" + event) }

// Break makes the shop answer 500, until Repair.
func (p *PHP) Break() { p.write("broken", "") }

// Repair ends Break.
func (p *PHP) Repair() { p.remove("broken") }

// DieAt makes the PHP process that handles an event die, once.
func (p *PHP) DieAt(event string) { p.write("die-"+event, "") }

// CutOffAt makes the PHP process that handles an event die within its answer,
// once.
func (p *PHP) CutOffAt(event string) { p.write("cut-"+event, "") }

func (p *PHP) write(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *PHP) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

// PHPRequest is a request as PHP saw it.
type PHPRequest struct {
	Event, Word, Length, Type, SHA256, Custom string
}

// Requests are the requests of an event so far.
func (p *PHP) Requests(event string) (requests []PHPRequest) {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "requests.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var r PHPRequest
		if json.Unmarshal([]byte(line), &r) == nil && r.Event == event {
			requests = append(requests, r)
		}
	}
	return requests
}

// Await waits until n requests of an event are in PHP.
func (p *PHP) Await(t testing.TB, event string, n int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("request %d of %s is in PHP", n, event), func() bool { return len(p.Requests(event)) >= n })
}

// Order is what the shop knows of an invoice: its status, and how often it was
// shipped.
func (p *PHP) Order(invoice string) string {
	p.t.Helper()
	out, err := exec.Command("php", filepath.Join(p.dir, "index.php"), invoice).CombinedOutput()
	if err != nil {
		p.t.Fatalf("asking the shop: %v: %s", err, out)
	}
	return string(out)
}
