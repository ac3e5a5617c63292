package filestore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSecondOpenInThisProcessIsRefused(t *testing.T) {
	f := newFixture(t)
	_, err := f.tryOpen()
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), f.path) {
		t.Fatalf("got %v, want ErrLocked that names %s", err, f.path)
	}
	f.complete("s:1") // and the first goes on
}

func TestSecondProcessIsRefusedUntilTheFirstIsGone(t *testing.T) {
	path := t.TempDir()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), childEnv+"=hold")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	if _, err := open(path, Options{}, setup{disk: dir(path)}); !errors.Is(err, ErrLocked) {
		t.Errorf("beside the other process: %v, want ErrLocked", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	stdin.Close()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal("after the other process was killed:", err)
	}
	s.Close()
}

func childHolds(path string) {
	if _, err := Open(path, Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
}

func TestOpenWaitsForAStoreThatIsLettingGo(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	opened := make(chan error)
	go func() {
		s, err := Open(f.path, Options{Now: f.clock.now})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	f.close()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	f.open()
}

func TestRefusedDirectoryIsUnlocked(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.close()
	name := f.lastSegment()
	good := readFile(t, name)
	bad := append([]byte(nil), good...)
	bad[0] ^= 1
	writeFile(t, name, bad)
	if _, err := f.tryOpen(); err == nil {
		t.Fatal("a damaged directory was opened")
	}
	writeFile(t, name, good)
	f.open()
	f.want("s:1", 4)
}
