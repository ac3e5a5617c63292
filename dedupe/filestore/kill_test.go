package filestore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestKillLosesNothingAcknowledged kills a process at random points and opens
// what it left.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	path := t.TempDir()
	states := make(map[string]dedupe.State)
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		after := 200 + rand.IntN(3000)
		runAndKill(t, path, round, after, states)
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("round %d, killed after %d lines: %v", round, after, err)
		}
		checkAcknowledged(t, s, states)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged events", len(states))
}

// runAndKill notes what a child acknowledges until it has said n things.
func runAndKill(t *testing.T, path string, round, n int, states map[string]dedupe.State) {
	t.Helper()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), childEnv+"=deliver", fmt.Sprintf("ROUND=%d", round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		state, key, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			break // cut off by the kill
		}
		switch state {
		case "claimed":
			states[key] = max(states[key], dedupe.InFlight)
		case "done":
			states[key] = dedupe.Completed
		}
		if i == n {
			cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

func checkAcknowledged(t *testing.T, s *Store, states map[string]dedupe.State) {
	t.Helper()
	for key, state := range states {
		r, err := s.Lookup(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if r.State == state {
			continue
		}
		// A completion that was not acknowledged may have been written.
		if state == dedupe.Completed || r.State != dedupe.Completed {
			t.Fatalf("%s was acknowledged as %v and is %v", key, state, r.State)
		}
	}
}

// childDelivers claims and completes events without end, and says so.
func childDelivers(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	say := func(what, key string) {
		out.Lock()
		defer out.Unlock()
		os.Stdout.WriteString(what + " " + key + "\n")
	}
	hold := dedupe.Hold{Token: "child", Lease: time.Minute, TTL: time.Hour}
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("s:%s-%d-%d", os.Getenv("ROUND"), w, i)
				if r, err := s.Claim(context.Background(), key, hold, true); err != nil || !r.OwnedBy("child") {
					fmt.Fprintln(os.Stderr, r, err)
					os.Exit(1)
				}
				say("claimed", key)
				if i%5 == 0 {
					continue
				}
				if err := s.Complete(context.Background(), key, dedupe.Done{TTL: time.Hour}); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				say("done", key)
			}
		})
	}
	all.Wait()
}
