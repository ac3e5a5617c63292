package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestCallsAfterCloseAreRefused(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.close()
	for name, call := range everyCall(f.Store, "s:1") {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !errors.Is(f.Err(), ErrClosed) {
		t.Errorf("Err: %v", f.Err())
	}
	if err := f.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestCloseSyncsWhateverTheMode(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.disk.syncs = 0
	f.close()
	if f.disk.syncs != 1 {
		t.Errorf("%d syncs", f.disk.syncs)
	}
	f.open()
}

func TestDirectoryAndFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	path := filepath.Join(t.TempDir(), "new", "store")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string]os.FileMode{
		path: 0o700, filepath.Dir(path): 0o700,
		filepath.Join(path, lockName): 0o600, filepath.Join(path, segmentName(1)): 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

func TestNamesBeyondTheFormatAreRefused(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	long := testHold(strings.Repeat("x", maxName+1))
	if _, err := f.Claim(ctx, "s:1", long, true); err == nil {
		t.Error("Claim took it")
	}
	if _, err := f.Renew(ctx, "s:1", long); err == nil {
		t.Error("Renew took it")
	}
	if err := f.Doubt(ctx, "s:1", long); err == nil {
		t.Error("Doubt took it")
	}
	if _, err := f.Bind(ctx, "b", long.Token, time.Hour); err == nil {
		t.Error("Bind took it")
	}
	if size := f.Stats().Bytes; size != headerSize {
		t.Errorf("%d bytes were written", size)
	}
}

func TestTickerWorksByItself(t *testing.T) {
	path := t.TempDir()
	d := &testDisk{dir: dir(path)}
	synced := make(chan struct{}, 100)
	d.hook(func(op, _ string) error {
		if op == "fsync" {
			synced <- struct{}{}
		}
		return nil
	})
	s, err := open(path, Options{}, setup{disk: d})
	if err != nil {
		t.Fatal(err)
	}
	for len(synced) > 0 {
		<-synced
	}
	if err := s.Complete(context.Background(), "s:1", testDone); err != nil {
		t.Fatal(err)
	}
	<-synced
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestZeroOptionsWork(t *testing.T) {
	path := t.TempDir()
	for round := range 2 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Claim(context.Background(), "s:1", testHold("a"), true)
		if err != nil || !r.OwnedBy("a") || r.Attempt != 1 {
			t.Errorf("round %d: %+v %v", round, r, err)
		}
		if r.LeaseLeft <= 0 || r.LeaseLeft > testLease || r.Left <= 0 || r.Left > testTTL+time.Millisecond {
			t.Errorf("round %d: %+v", round, r)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModesHaveNames(t *testing.T) {
	if EverySec.String() != "everysec" || Always.String() != "always" {
		t.Error(EverySec, Always)
	}
	if Sync(0) != EverySec {
		t.Error("the default is not everysec")
	}
}

func TestAbsentEventIsTheZeroRecord(t *testing.T) {
	f := newFixture(t)
	if r := f.lookup("s:never"); r != (dedupe.Record{}) {
		t.Errorf("got %+v", r)
	}
}

// TestTornEndIsCutOffOnARealDisk: what is written after it would be lost behind
// it otherwise.
func TestTornEndIsCutOffOnARealDisk(t *testing.T) {
	path := t.TempDir()
	ctx := context.Background()
	for i := range 3 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for j := range i {
			if r, err := s.Lookup(ctx, fmt.Sprint("s:", j)); err != nil || r.State != dedupe.Completed {
				t.Errorf("opened %d times, event %d is %+v, %v", i, j, r, err)
			}
		}
		if err := s.Complete(ctx, fmt.Sprint("s:", i), testDone); err != nil {
			t.Fatal(err)
		}
		name := dir(path).path(segmentName(s.current.seq))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, append(readFile(t, name), "half a record"...))
	}
}

// TestOnlyWhatIsSyncedIsMarked: by the mark, opening tells what a power cut can
// have kept from the disk from damage.
func TestOnlyWhatIsSyncedIsMarked(t *testing.T) {
	f := newFixture(t)
	marks := func() (n int) {
		data := readFile(t, f.lastSegment())
		for at := headerSize; at < len(data); {
			body, err := nextFrame(data[at:])
			if err != nil {
				t.Fatal(err)
			}
			if kind(body[0]) == kindSynced {
				n++
			}
			at += frameHead + len(body)
		}
		return n
	}
	f.complete("s:1")
	f.onWriter(f.tend)
	if n := marks(); n != 0 {
		t.Errorf("%d marks before the sync", n)
	}
	f.tick()
	f.tick()
	if n := marks(); n != 1 {
		t.Errorf("%d marks after it, want 1", n)
	}
}
