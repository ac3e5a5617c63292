package filestore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func TestExpiryGivesMemoryAndDiskBack(t *testing.T) {
	f := newFixture(t)
	for round := range 4 {
		for i := range 50 {
			f.complete(fmt.Sprintf("s:%d-%d", round, i))
		}
		f.claim(fmt.Sprintf("s:%d-held", round), "a")
		f.bind(fmt.Sprintf("b:%d", round), "v")
		f.clock.advance(testTTL / 8)
		f.tick()
	}
	if st := f.Stats(); st.Done != 200 || st.Active != 4 || st.Bindings != 4 || st.Segments < 4 {
		t.Fatalf("before anything expired: %+v", st)
	}
	f.clock.advance(testTTL)
	for range sweepTicks + 2 {
		f.tick()
	}
	if st := f.Stats(); st != (Stats{Segments: 1, Bytes: headerSize}) {
		t.Errorf("after all has expired: %+v", st)
	}
	if files := f.segmentFiles(); len(files) != 1 || len(readFile(t, files[0])) != headerSize {
		t.Errorf("the directory holds %v", files)
	}
	f.crash()
	f.want("s:0-0", dedupe.Absent)
	f.complete("s:0-0")
}

// TestOldSegmentIsSyncedBeforeTheNextBegins: replay takes only the last one for
// one that a power cut can have damaged.
func TestOldSegmentIsSyncedBeforeTheNextBegins(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	var ops []string
	f.disk.hook(func(op, name string) error {
		ops = append(ops, op+" "+name)
		return nil
	})
	f.onWriter(f.rotate)
	f.disk.failing(nil)
	old, next := segmentName(1), segmentName(2)
	draft := next + draftSuffix
	want := []string{
		"fsync " + old, "create " + draft, "write " + draft, "fsync " + draft,
		"rename " + next, "sync ", "open " + next,
	}
	if !slices.Equal(ops, want) {
		t.Errorf("got %q, want %q", ops, want)
	}
}

func TestIdleStoreWritesAndSyncsNothing(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.tick()
	f.tick()
	before, size := f.disk.syncs, f.Stats().Bytes
	for range 10 {
		f.lookup("s:1")
		f.tick()
	}
	if f.disk.syncs != before || f.Stats().Bytes != size {
		t.Errorf("%d syncs and %d bytes while idle", f.disk.syncs-before, f.Stats().Bytes-size)
	}
}

func TestSegmentsRotateBySize(t *testing.T) {
	f := newFixture(t)
	f.maxSegment = 2000
	for i := range 200 {
		f.complete(fmt.Sprint("s:", i))
		f.tick()
	}
	st := f.Stats()
	if st.Segments < 3 || st.Segments > 12 {
		t.Errorf("%+v", st)
	}
	var onDisk int64
	for _, name := range f.segmentFiles() {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if onDisk != st.Bytes {
		t.Errorf("%d bytes on disk, %d in the statistics", onDisk, st.Bytes)
	}
	f.crash()
	if again := f.Stats(); again.Done != 200 || again.Segments != st.Segments {
		t.Errorf("after opening: %+v, before: %+v", again, st)
	}
	for i := range 200 {
		f.want(fmt.Sprint("s:", i), dedupe.Completed)
	}
}

func TestSegmentsRotateByAgeInProportionToTheirRecords(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		10 * time.Minute:       minAge,
		64 * time.Hour:         2 * time.Hour,
		10 * 365 * 24 * 3600e9: maxAge,
	} {
		f := newFixture(t)
		if err := f.Complete(context.Background(), "s:1", dedupe.Done{TTL: ttl}); err != nil {
			t.Fatal(err)
		}
		f.clock.advance(want - time.Millisecond)
		f.tick()
		if f.Stats().Segments != 1 {
			t.Errorf("ttl %v: rotated before %v", ttl, want)
		}
		f.clock.advance(time.Millisecond)
		f.tick()
		if f.Stats().Segments != 2 {
			t.Errorf("ttl %v: not rotated after %v", ttl, want)
		}
		f.clock.advance(want)
		f.tick()
		if f.Stats().Segments != 2 {
			t.Errorf("ttl %v: an empty segment was rotated", ttl)
		}
	}
}

// TestNoSegmentIsUnlinkedBeforeAnOlderOne: otherwise the older one's record
// would count again.
func TestNoSegmentIsUnlinkedBeforeAnOlderOne(t *testing.T) {
	f := newFixture(t)
	f.claim("s:1", "a") // for testTTL
	f.onWriter(f.rotate)
	if err := f.Complete(context.Background(), "s:1", dedupe.Done{TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	f.onWriter(f.rotate)
	f.clock.advance(time.Hour)
	f.unlink()
	if n := f.Stats().Segments; n != 3 {
		t.Errorf("%d segments, want 3", n)
	}
	f.crash()
	f.want("s:1", dedupe.Absent)
	f.clock.advance(testTTL)
	f.unlink()
	if n := f.Stats().Segments; n != 1 {
		t.Errorf("%d segments after all has expired", n)
	}
}

func TestSegmentOfARecoveryLivesAsLongAsItsRecords(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.disk.failing(syscall.EIO, "fsync")
	f.tick()
	f.disk.failing(nil)
	f.tick()
	f.clock.advance(testTTL - time.Second)
	f.tick()
	f.crash()
	f.want("s:1", dedupe.Completed)
	f.clock.advance(time.Second)
	f.tick()
	if n := f.Stats().Segments; n != 1 {
		t.Errorf("%d segments after all has expired", n)
	}
}

func TestIdleSegmentOfARecoveryIsGivenBack(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.disk.failing(syscall.EIO, "fsync")
	f.tick()
	f.disk.failing(nil)
	f.tick()
	f.clock.advance(testTTL)
	f.tick()
	if st := f.Stats(); st.Segments != 1 || st.Bytes != headerSize {
		t.Errorf("after all has expired: %+v", st)
	}
}

func TestRenewalsAreWrittenOnlyWhenTheLogFallsBehind(t *testing.T) {
	f := newFixture(t)
	f.claim("s:1", "a")
	size := f.Stats().Bytes
	renew := func() {
		t.Helper()
		if ok, err := f.Renew(context.Background(), "s:1", testHold("a")); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	for range 100 {
		f.clock.advance(10 * time.Second)
		renew()
		f.claim("s:1", "a")
	}
	if grown := f.Stats().Bytes - size; grown != 0 {
		t.Errorf("%d bytes for renewals within %v", grown, 1000*time.Second)
	}
	f.crash()
	behind := testTTL - f.lookup("s:1").Left
	if behind > testTTL/16 {
		t.Errorf("the log is behind by %v", behind)
	}
	f.clock.advance(testTTL / 16)
	size = f.Stats().Bytes
	renew()
	renew()
	if grown := f.Stats().Bytes - size; grown <= 0 || grown > maxBody {
		t.Errorf("%d bytes for renewals that were due", grown)
	}
	f.crash()
	if left := f.lookup("s:1").Left; left != testTTL {
		t.Errorf("%v left after opening", left)
	}
	size = f.Stats().Bytes
	if renew(); f.Stats().Bytes != size {
		t.Error("the first renewal after opening was written, with nothing new to say")
	}
	other := testHold("a")
	other.Lease *= 2
	if _, err := f.Renew(context.Background(), "s:1", other); err != nil {
		t.Fatal(err)
	}
	f.crash()
	if left := f.lookup("s:1").LeaseLeft; left != other.Lease {
		t.Errorf("another length of the lease was not written: %v", left)
	}
}

func TestRenewingAnAbsentRecordIsWritten(t *testing.T) {
	f := newFixture(t)
	h := testHold("a")
	h.Attempt, h.Doubted = 4, true
	if ok, err := f.Renew(context.Background(), "s:1", h); !ok || err != nil {
		t.Fatal(ok, err)
	}
	f.crash()
	if r := f.lookup("s:1"); !r.OwnedBy("a") || r.Attempt != 4 || !r.Doubted {
		t.Errorf("got %+v", r)
	}
}

func TestClockSetBackKeepsEvents(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.tick()
	f.clock.advance(-48 * time.Hour)
	f.tick()
	f.want("s:1", dedupe.Completed)
	f.complete("s:2")
	f.crash()
	f.want("s:1", dedupe.Completed)
	f.want("s:2", dedupe.Completed)
	if n := f.Stats().Segments; n != 1 {
		t.Errorf("%d segments", n)
	}
	if !contains(f.logs.String(), "clock is behind") {
		t.Errorf("nobody was told: %s", f.logs)
	}
	f.clock.advance(testTTL)
	f.want("s:2", dedupe.Absent)
	f.want("s:1", dedupe.Completed)
}

func TestClockSetForwardForgetsAndDoesNotResurrectWhatWasSwept(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.clock.advance(1000 * time.Hour)
	for range sweepTicks {
		f.tick()
	}
	f.want("s:1", dedupe.Absent)
	f.clock.advance(-1000 * time.Hour)
	f.want("s:1", dedupe.Absent)
	f.crash()
	f.want("s:1", dedupe.Absent)
}
