package filestore

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func TestBackgroundSyncKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.complete("s:1")
		g := holdBack(f, "fsync")
		background := start(func() error { f.syncWritten(); return nil })
		for i := range 5 {
			c := start(func() error { return f.Complete(context.Background(), fmt.Sprint("s:", i), testDone) })
			if err, ok := c.returned(); !ok || err != nil {
				t.Fatalf("a write during a sync: returned %v, %v", ok, err)
			}
		}
		g.pass <- nil
		if _, ok := background.returned(); !ok {
			t.Fatal("the sync is not over")
		}
		if f.current.synced >= f.current.size || len(f.unsynced) != int(f.current.size-f.current.synced) {
			t.Errorf("%d of %d bytes count as synced, and %d are kept", f.current.synced, f.current.size, len(f.unsynced))
		}
		close(g.pass)
	})
}

// TestAcknowledgedDuringASyncThatFails is kept: the failure is about what was
// written before, but the file holds both.
func TestAcknowledgedDuringASyncThatFailsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.complete("s:1")
		g := holdBack(f, "fsync")
		start(func() error { f.syncWritten(); return nil })
		f.complete("s:2")
		g.pass <- syscall.EIO
		synctest.Wait()
		f.tick()
		close(g.pass)
		f.crash()
		f.want("s:1", dedupe.Completed)
		f.want("s:2", dedupe.Completed)
	})
}

// TestWriteDuringAFailingSyncIsNotAcknowledged: the sync fails while a batch is
// being written to the same file.
func TestWriteDuringAFailingSyncIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.complete("s:1")
		syncs, writes := holdBack(f, "fsync"), (*gate)(nil)
		writes = holdBack(f, "write")
		syncing := start(func() error { f.syncWritten(); return nil })
		c := start(func() error { return f.Complete(context.Background(), "s:2", testDone) })
		syncs.pass <- syscall.EIO
		syncing.returned()
		close(writes.pass)
		if err, ok := c.returned(); !ok || !errors.Is(err, syscall.EIO) {
			t.Errorf("the write returned %v, %v", ok, err)
		}
		close(syncs.pass)
		f.tick()
		f.want("s:1", dedupe.Completed)
		f.want("s:2", dedupe.Absent)
		f.crash()
		f.want("s:1", dedupe.Completed)
		f.want("s:2", dedupe.Absent)
	})
}

func TestWritesWaitWhenTooMuchIsUnsynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.maxUnsynced = 100
		g := holdBack(f, "fsync")
		f.complete("s:1")
		f.complete("s:2")
		f.claim("s:3", "a") // is acknowledged, and makes it too much
		c := start(func() error { return f.Complete(context.Background(), "s:4", testDone) })
		if _, ok := c.returned(); ok {
			t.Error("a further write did not wait for the sync")
		}
		close(g.pass)
		if err, ok := c.returned(); !ok || err != nil {
			t.Errorf("returned %v, %v", ok, err)
		}
	})
}

func TestAlwaysSyncsBeforeAnswering(t *testing.T) {
	f := newFixture(t)
	f.disk.syncs = 0
	f.complete("s:1")
	if f.disk.syncs != 0 {
		t.Error("everysec synced before answering")
	}
	f.SetSync(Always)
	f.complete("s:2")
	if f.disk.syncs != 1 || f.current.synced != f.current.size || len(f.unsynced) != 0 {
		t.Errorf("%d syncs; %d of %d synced; %d kept", f.disk.syncs, f.current.synced, f.current.size, len(f.unsynced))
	}
	f.claim("s:2", "x") // changes nothing
	f.SetSync(EverySec)
	f.complete("s:3")
	if f.disk.syncs != 1 {
		t.Errorf("%d syncs, want no further one", f.disk.syncs)
	}
}
