package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// machine is where and with what something was measured.
type machine struct {
	CPU, Kernel, Go, Caddy, Redis, Nginx string
	Cores                                int
	// Pinned: the program under test has a core for itself.
	Pinned bool
	// Disk is where the file store writes: a file system's kind.
	Disk string
}

// cores is how many cores this process may use.
func cores() int { return runtime.NumCPU() }

func (r *rig) machine(ctx context.Context) machine {
	m := machine{
		Go: runtime.Version(), Cores: cores(), Pinned: r.pinned, Disk: fileSystem(r.dir),
		Redis: printed(ctx, "redis-server", "--version"), Nginx: printed(ctx, "nginx", "-v"),
		Kernel: printed(ctx, "uname", "-sr"), Caddy: printed(ctx, r.caddy, "version"),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/caddyserver/caddy/v2" {
				m.Caddy = dep.Version
			}
		}
	}
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// printed is the first line that a command prints, or nothing.
func printed(ctx context.Context, name string, args ...string) string {
	output, _ := exec.CommandContext(ctx, name, args...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	return line
}

// fileSystem names those kinds that matter: on tmpfs a sync costs nothing.
func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return ""
	}
	switch s.Type {
	case 0x01021994:
		return "tmpfs"
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683e:
		return "btrfs"
	case 0x794c7630:
		return "overlay"
	}
	return fmt.Sprintf("%#x", s.Type)
}

func (m machine) write(w io.Writer, s settings) {
	fmt.Fprintf(w, "%s, %d cores; %s; %s; Caddy %s; %s; %s; files on %s\n", m.CPU, m.Cores, m.Kernel, m.Go, m.Caddy, m.Redis, m.Nginx, m.Disk)
	fmt.Fprintf(w, "\n%d connections, bodies of %d bytes; where there are rounds: %d of %v, at a fixed rate (%.0f/s) of %v\n",
		s.connections, s.body, s.rounds, s.duration, s.rate, s.openDuration)
	if !m.Pinned {
		fmt.Fprintln(w, "\n**Not pinned**: there is one core, or no taskset. The load generator, the upstream and Redis take time from the program under test.")
	}
}
