package filestore

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// faults are the ways in which a write can go wrong. Each call of the disk
// named in ops fails while the fault lasts.
var faults = []struct {
	name  string
	mode  Sync
	err   error
	short int
	ops   []string
}{
	{"a full disk", EverySec, syscall.ENOSPC, 0, []string{"write"}},
	{"a full disk, after a part of the write", EverySec, syscall.ENOSPC, 40, []string{"write"}},
	{"a full disk, after whole records", EverySec, syscall.ENOSPC, 1 << 20, []string{"write"}},
	{"a short write without an error", EverySec, errShortWrite, 7, []string{"write"}},
	{"an input/output error", EverySec, syscall.EIO, 0, []string{"write", "create", "fsync"}},
	{"a failed sync before answering", Always, syscall.EIO, 0, []string{"fsync"}},
	{"a full disk with sync always", Always, syscall.ENOSPC, 3, []string{"write"}},
}

func forEachFault(t *testing.T, test func(t *testing.T, f *fixture, fail, heal func())) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			f := newFixture(t)
			f.mode = fault.mode
			f.SetSync(fault.mode)
			test(t, f,
				func() { f.disk.short = fault.short; f.disk.failing(fault.err, fault.ops...) },
				func() { f.disk.failing(nil) })
		})
	}
}

func TestFaultIsToldToEveryCallerUntilItIsOver(t *testing.T) {
	forEachFault(t, func(t *testing.T, f *fixture, fail, heal func()) {
		f.complete("s:old")
		fail()
		if err := f.Complete(context.Background(), "s:1", testDone); err == nil {
			t.Fatal("a completion that was not written was acknowledged")
		}
		for name, call := range everyCall(f.Store, "s:old") {
			if err := call(); err == nil || !strings.Contains(err.Error(), "cannot be written") {
				t.Errorf("%s while the store has failed: %v", name, err)
			}
		}
		f.tick() // the fault lasts
		if f.Err() == nil {
			t.Fatal("recovered while the fault lasts")
		}
		heal()
		f.tick()
		if err := f.Err(); err != nil {
			t.Fatal("not recovered:", err)
		}
		for name, call := range everyCall(f.Store, "s:old") {
			if err := call(); err != nil {
				t.Errorf("%s after the fault: %v", name, err)
			}
		}
		if n := strings.Count(f.logs.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors were logged, want 1: %s", n, f.logs)
		}
	})
}

// everyCall is a call of each method that needs the store.
func everyCall(s *Store, key string) map[string]func() error {
	ctx := context.Background()
	h := testHold("caller")
	return map[string]func() error{
		"Claim":    func() error { _, err := s.Claim(ctx, key, h, true); return err },
		"Renew":    func() error { _, err := s.Renew(ctx, key, h); return err },
		"Complete": func() error { return s.Complete(ctx, key, testDone) },
		"Release":  func() error { return s.Release(ctx, key, h) },
		"Doubt":    func() error { return s.Doubt(ctx, key, h) },
		"Lookup":   func() error { _, err := s.Lookup(ctx, key); return err },
		"Bind":     func() error { _, err := s.Bind(ctx, key, "v", testTTL); return err },
	}
}

// TestFaultTakesBackWhatWasNotWritten compares memory and disk with what they
// were before the fault.
func TestFaultTakesBackWhatWasNotWritten(t *testing.T) {
	forEachFault(t, func(t *testing.T, f *fixture, fail, heal func()) {
		states := smallLog(f)
		want := states[len(states)-1]
		ctx := context.Background()
		steps := []func() error{
			func() error { _, err := f.Claim(ctx, "s:2", testHold("x"), true); return err },
			func() error { return f.Complete(ctx, "s:3", testDone) },
			func() error { return f.Release(ctx, "s:3", testHold("a")) },
			func() error { _, err := f.Claim(ctx, "s:4", testHold("x"), true); return err },
			func() error { _, err := f.Bind(ctx, "b2", "v2", testTTL); return err },
		}
		for i, step := range steps {
			fail()
			if err := step(); err == nil {
				t.Fatalf("step %d was acknowledged", i)
			}
			heal()
			f.tick()
			checkState(f, want)
			f.want("s:4", dedupe.Absent)
		}
		if got := f.bind("b2", "mine"); got != "mine" {
			t.Errorf("a binding that was not written is there: %q", got)
		}
		f.crash()
		checkState(f, want)
		f.want("s:4", dedupe.Absent)
		if got := f.bind("b2", "other"); got != "mine" {
			t.Errorf("after opening, the binding is %q", got)
		}
	})
}

// TestKillWhileFailedKeepsWhatWasAcknowledged: the directory can be opened
// whatever state the fault left it in.
func TestKillWhileFailedKeepsWhatWasAcknowledged(t *testing.T) {
	forEachFault(t, func(t *testing.T, f *fixture, fail, heal func()) {
		states := smallLog(f)
		fail()
		if err := f.Complete(context.Background(), "s:9", testDone); err == nil {
			t.Fatal("acknowledged")
		}
		f.tick()
		heal()
		f.crash()
		checkState(f, states[len(states)-1])
	})
}

func TestCloseRecoversIfTheFaultIsOver(t *testing.T) {
	forEachFault(t, func(t *testing.T, f *fixture, fail, heal func()) {
		states := smallLog(f)
		fail()
		f.Complete(context.Background(), "s:9", testDone)
		if err := f.Close(); err == nil {
			t.Error("closed without an error while the fault lasts")
		}
		heal()
		f.open()
		checkState(f, states[len(states)-1])
		fail()
		f.Complete(context.Background(), "s:9", testDone)
		heal()
		f.reopen()
		checkState(f, states[len(states)-1])
	})
}
