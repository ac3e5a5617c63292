package harness

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// process is a program that runs beside the test. What it prints is kept.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	exited chan struct{}

	mu    sync.Mutex
	lines []string
}

// startProcess starts a program in a process group of its own. The caller ends
// it.
func startProcess(t testing.TB, dir string, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = attributes()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("this test needs %s: %v", name, err)
	}
	in.Close()
	read := make(chan struct{})
	go func() { defer close(read); p.read(out) }()
	go func() {
		_ = p.cmd.Wait()
		<-read // its last words are in
		close(p.exited)
	}()
	return p
}

func (p *process) read(out io.ReadCloser) {
	defer out.Close()
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" {
			p.mu.Lock()
			p.lines = append(p.lines, line)
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// output is what the process has printed so far.
func (p *process) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)]
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// signal sends sig to the process and all that it has started.
func (p *process) signal(sig syscall.Signal) {
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// terminate asks the process to end and waits until it has.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	Eventually(p.t, p.name+" has ended", func() bool { return !p.running() })
}

// tail is the end of what the process has printed.
func (p *process) tail() string {
	lines := p.output()
	const most = 20
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.Join(lines, "\n")
}
