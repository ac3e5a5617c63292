// Package harness runs what the end-to-end tests need, all of it real: Caddy
// processes with the gateway in them, Redis servers, PHP, upstreams that fail
// in every way an upstream can, and senders that sign. Whatever a test starts
// ends with the test. A program that is missing fails the test; nothing is
// skipped.
package harness

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come. It measures nothing: a
// busy machine shall not fail a test.
const Patience = 60 * time.Second

// program is the Caddy that the tests run, with the race detector in it.
var program string

// Main builds the program, runs the tests and returns the exit status.
func Main(m *testing.M) int {
	flag.Parse()
	if !flagGiven("test.parallel") {
		// The tests mostly wait: for leases, for time-outs, for each other.
		_ = flag.Set("test.parallel", "8")
	}
	dir, err := os.MkdirTemp("", "webhook-dedupe-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "caddy")
	// The flags of the whole module's tests, so that one build cache serves both.
	build := exec.Command("go", "build", "-race", "-tags", "nobadger,nomysql,nopgx", "-o", program, "./caddy")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the program under test:", err)
		return 1
	}
	return m.Run()
}

func flagGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// Eventually waits until ok holds.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(3 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// nextPort walks through ports below those that the kernel gives to clients, so
// that nobody's outgoing connection sits on one that a test is about to use.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(10_000)) }

// FreePort returns a port of the loopback interface that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 1_000 {
		port := strconv.Itoa(20_000 + int(nextPort.Add(1)%10_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

// Unique returns an event id that no other test uses.
func Unique(prefix string) string {
	return prefix + "_" + strconv.FormatUint(rand.Uint64(), 36)
}
