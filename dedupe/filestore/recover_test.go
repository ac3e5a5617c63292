package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestFailedSyncInTheBackgroundIsNotTrustedAgain: what was acknowledged since
// the last good sync is written again, elsewhere.
func TestFailedSyncInTheBackgroundIsNotTrustedAgain(t *testing.T) {
	f := newFixture(t)
	f.complete("s:synced")
	f.tick()
	synced := f.current.synced
	first := f.lastSegment()
	f.complete("s:1")
	f.claim("s:2", "a")
	f.disk.failing(syscall.EIO, "fsync")
	f.tick()
	if f.Err() == nil {
		t.Fatal("the failed sync went unnoticed")
	}
	if err := f.Complete(context.Background(), "s:3", testDone); !errors.Is(err, syscall.EIO) {
		t.Errorf("a call after the failed sync: %v", err)
	}
	// A sync of the old file would now succeed, and lie.
	f.disk.hook(func(op, name string) error {
		if op == "fsync" && strings.HasSuffix(first, name) {
			t.Error("the old file was synced again")
		}
		return nil
	})
	f.tick()
	f.complete("s:3")
	f.crash()
	for _, key := range []string{"s:synced", "s:1", "s:3"} {
		f.want(key, dedupe.Completed)
	}
	f.want("s:2", dedupe.InFlight)
	if size := int64(len(readFile(t, first))); size != synced {
		t.Errorf("the old segment has %d bytes, want the %d that were synced", size, synced)
	}
}

// TestFullDiskNeedsNoRoomForACopy: after a failed write, the file is still to
// be trusted with what it holds.
func TestFullDiskNeedsNoRoomForACopy(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.disk.short = 40 // enough for a little more than one record
	f.disk.failing(syscall.ENOSPC, "write")
	if err := f.Complete(context.Background(), "s:2", testDone); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	f.disk.failing(nil)
	f.tick()
	if err := f.Err(); err != nil || f.current.size != headerSize {
		t.Errorf("%v; the new segment has %d bytes, want a header only", err, f.current.size)
	}
	f.crash()
	f.want("s:1", dedupe.Completed)
	f.want("s:2", dedupe.Absent)
}

// TestUnsyncedPartOfTheOldSegmentMayBeLost is the power cut after a recovery.
func TestUnsyncedPartOfTheOldSegmentMayBeLost(t *testing.T) {
	f := newFixture(t)
	f.complete("s:synced")
	f.tick()
	first := f.lastSegment()
	f.complete("s:1")
	f.disk.failing(syscall.EIO, "fsync", "truncate")
	f.tick()
	f.disk.failing(syscall.EIO, "truncate")
	f.tick()
	if err := f.Err(); err != nil {
		t.Fatal("a segment that cannot be shortened kept the store from recovering:", err)
	}
	f.complete("s:2")
	f.kill()
	data := readFile(t, first)
	clear(data[f.older[0].synced:])
	writeFile(t, first, data)
	f.disk.failing(nil)
	f.open()
	for _, key := range []string{"s:synced", "s:1", "s:2"} {
		f.want(key, dedupe.Completed)
	}
}

// TestRecoveryCanFailAtEveryStep lets it fail there once or twice, with a kill
// after it or not.
func TestRecoveryCanFailAtEveryStep(t *testing.T) {
	for _, op := range []string{"create", "write", "fsync", "rename", "sync", "open", "truncate"} {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", op, kill), func(t *testing.T) {
				f := newFixture(t)
				states := smallLog(f)
				f.disk.failing(syscall.EIO, "write")
				f.Complete(context.Background(), "s:9", testDone)
				for range 2 {
					f.disk.failing(syscall.EIO, op)
					f.tick()
				}
				f.disk.failing(nil)
				if kill {
					f.kill()
					f.open()
				}
				f.tick()
				checkState(f, states[len(states)-1])
				f.complete("s:7")
				f.crash()
				f.want("s:7", dedupe.Completed)
				checkState(f, states[len(states)-1])
			})
		}
	}
}

// TestRotationCanFailAtEveryStep: nothing that is acknowledged before, between
// or after is lost.
func TestRotationCanFailAtEveryStep(t *testing.T) {
	for _, op := range []string{"create", "write", "fsync", "rename", "sync", "open", "remove"} {
		t.Run(op, func(t *testing.T) {
			f := newFixture(t)
			var keys []string
			complete := func() {
				key := fmt.Sprintf("s:%d", len(keys))
				if f.Complete(context.Background(), key, testDone) == nil {
					keys = append(keys, key)
				}
			}
			for range 3 {
				complete()
				f.disk.failing(syscall.EIO, op)
				f.onWriter(f.rotate)
				complete()
				f.disk.failing(nil)
				complete()
				f.tick()
				complete()
			}
			if len(keys) < 6 {
				t.Fatalf("only %d were acknowledged", len(keys))
			}
			f.crash()
			for _, key := range keys {
				f.want(key, dedupe.Completed)
			}
		})
	}
}

func TestSegmentThatCannotBeRemovedIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.onWriter(f.rotate)
	f.clock.advance(testTTL)
	f.disk.failing(syscall.EACCES, "remove")
	f.unlink()
	if n := len(f.segmentFiles()); n != 2 {
		t.Fatalf("%d segments", n)
	}
	f.disk.failing(nil)
	f.unlink()
	if n := len(f.segmentFiles()); n != 1 {
		t.Errorf("%d segments are left, want 1", n)
	}
}

func TestMarkThatCannotBeWrittenFailsTheStore(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.disk.failing(syscall.ENOSPC, "write")
	f.tick()
	if f.Err() == nil {
		t.Fatal("a failed write went unnoticed")
	}
	f.disk.failing(nil)
	f.tick()
	f.complete("s:2")
	f.crash()
	f.want("s:1", dedupe.Completed)
	f.want("s:2", dedupe.Completed)
}

func TestOpenFailsCleanlyWhereItCannotWrite(t *testing.T) {
	for _, op := range []string{"create", "write", "fsync", "rename", "sync", "open"} {
		t.Run("new directory, "+op, func(t *testing.T) {
			path := t.TempDir()
			d := &testDisk{dir: dir(path)}
			d.failing(syscall.EROFS, op)
			if _, err := open(path, Options{}, setup{disk: d}); !errors.Is(err, syscall.EROFS) {
				t.Errorf("got %v", err)
			}
			d.failing(nil)
			s, err := open(path, Options{}, setup{disk: d, noTicks: true})
			if err != nil {
				t.Fatal("afterwards:", err)
			}
			s.Close()
		})
	}
	for _, op := range []string{"open", "fsync", "sync"} {
		f := newFixture(t)
		f.complete("s:1")
		f.close()
		f.disk.failing(syscall.EIO, op)
		if _, err := f.tryOpen(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: got %v", op, err)
		}
		f.disk.failing(nil)
		f.open()
		f.want("s:1", dedupe.Completed)
	}
}

func TestOpenOfAFileIsRefused(t *testing.T) {
	name := t.TempDir() + "/file"
	writeFile(t, name, nil)
	if _, err := Open(name, Options{}); err == nil {
		t.Error("opened")
	}
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}
