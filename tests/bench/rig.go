package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The cores: the program under test has one for itself, and everything that it
// talks to shares the other.
const (
	serverCore = 0
	loadCore   = 1
)

// rig is what a run of the benchmark has brought up.
type rig struct {
	settings
	self     string // this program
	dir      string // of everything that a run writes
	caddy    string // the program under test
	pinned   bool
	upstream string // its address
	redis    *redisServer
	servers  map[string]*server

	processes []*process
}

// server is a program under test that is running.
type server struct {
	pid   int
	admin string            // of Caddy
	sites map[string]string // addresses, by sender
	proc  *process
}

// newRig brings up what all measurements need: the upstream and Redis.
func newRig(ctx context.Context, s settings) (*rig, error) {
	r := &rig{settings: s, servers: make(map[string]*server)}
	var err error
	if r.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(s.dir, "webhook-dedupe-bench"); err != nil {
		return nil, err
	}
	_, err = exec.LookPath("taskset")
	r.pinned = err == nil && cores() > 1
	if r.caddy, err = r.build(ctx); err != nil {
		return r, err
	}
	r.upstream = freeAddress()
	if _, err := r.start(loadCore, r.upstream, r.self, "upstream", r.upstream); err != nil {
		return r, err
	}
	r.redis, err = r.startRedis()
	return r, err
}

// close ends all processes and removes what they wrote.
func (r *rig) close() {
	for _, p := range r.processes {
		p.stop()
	}
	_ = os.RemoveAll(r.dir)
}

// command is a program on one of the cores.
func (r *rig) command(ctx context.Context, core int, name string, args ...string) *exec.Cmd {
	if r.pinned {
		name, args = "taskset", append([]string{"-c", strconv.Itoa(core), name}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir, "HOME="+r.dir)
	if r.pinned {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	return cmd
}

// process is a program that runs until it is stopped.
type process struct {
	cmd    *exec.Cmd
	output lastWords
	exited chan struct{}
	// again starts the same program once more.
	again func(r *rig) (*process, error)
}

// start starts a program and waits until it listens at an address.
func (r *rig) start(core int, address, name string, args ...string) (*process, error) {
	p := &process{cmd: r.command(context.Background(), core, name, args...), exited: make(chan struct{})}
	p.again = func(r *rig) (*process, error) { return r.start(core, address, name, args...) }
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is ours to handle
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	r.processes = append(r.processes, p)
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
		stdin.Close()
	}()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.exited:
			return nil, fmt.Errorf("%s has ended: %s", filepath.Base(name), p.output.String())
		default:
		}
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s does not listen: %s", filepath.Base(name), p.output.String())
}

// stop asks the process to end, and makes it end if it does not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return
	case <-time.After(10 * time.Second):
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// lastWords keeps the end of what is written to it.
type lastWords struct {
	mu  sync.Mutex
	buf []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const most = 4 << 10
	w.buf = append(w.buf, p...)
	w.buf = w.buf[max(0, len(w.buf)-most):]
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.buf))
}

// runWith runs a command to its end and returns what it printed.
func runWith(cmd *exec.Cmd, input []byte) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	output, err := cmd.Output()
	if err != nil && stderr.Len() > 0 {
		err = errors.New(strings.TrimSpace(stderr.String()))
	}
	return output, err
}

// freeAddress is an address of the loopback interface that nobody listens on.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // a machine without a loopback interface
	}
	defer l.Close()
	return l.Addr().String()
}
