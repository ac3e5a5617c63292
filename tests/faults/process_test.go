package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// pidOf finds the process of a gateway that runs.
func pidOf(t *testing.T, g *harness.Gateway) int {
	t.Helper()
	own := []byte(filepath.Dir(g.Write("mark", "")) + "/Caddyfile")
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if command, err := os.ReadFile(dir + "/cmdline"); err == nil && bytes.Contains(command, own) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	t.Fatal("the gateway has no process")
	return 0
}

// signal sends a signal to a gateway.
func signal(t *testing.T, g *harness.Gateway, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pidOf(t, g), s); err != nil {
		t.Fatal(err)
	}
}

// resident is a figure of a process's memory in MiB: VmRSS is what it has now,
// VmHWM the most that it ever had.
func resident(t *testing.T, pid int, figure string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), figure+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
