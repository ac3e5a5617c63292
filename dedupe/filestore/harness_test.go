package filestore

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// childEnv makes the test binary a child process of one of the tests.
const childEnv = "FILESTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "deliver":
		childDelivers(os.Args[1])
	case "hold":
		childHolds(os.Args[1])
	}
}

// clock is a clock that moves by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// fixture is a store without a ticker, on a fake clock and a test disk.
type fixture struct {
	*Store
	t     *testing.T
	path  string
	clock *clock
	disk  *testDisk
	mode  Sync
	logs  *bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	path := t.TempDir()
	f := &fixture{t: t, path: path, clock: newClock(), logs: &bytes.Buffer{}, disk: &testDisk{dir: dir(path)}}
	f.open()
	t.Cleanup(func() {
		f.disk.failing(nil)
		f.Store.Close()
	})
	return f
}

func (f *fixture) tryOpen() (*Store, error) {
	log := slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return open(f.path, Options{Sync: f.mode, Now: f.clock.now, Logger: log}, setup{disk: f.disk, noTicks: true})
}

func (f *fixture) open() {
	f.t.Helper()
	s, err := f.tryOpen()
	if err != nil {
		f.t.Fatal(err)
	}
	f.Store = s
}

func (f *fixture) reopen() {
	f.t.Helper()
	f.close()
	f.open()
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.Store.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// crash leaves the directory as a killed process would, and opens it again.
func (f *fixture) crash() {
	f.t.Helper()
	f.kill()
	f.open()
}

// kill ends the store without letting it finish anything.
func (f *fixture) kill() {
	close(f.Store.quit)
	<-f.Store.writerDone
	f.Store.mu.Lock()
	f.Store.closed = true
	f.Store.mu.Unlock()
	f.Store.current.file.Close()
	f.Store.lock.Close()
}

func (f *fixture) claim(key, token string) dedupe.Record {
	f.t.Helper()
	r, err := f.Claim(context.Background(), key, testHold(token), true)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) complete(key string) {
	f.t.Helper()
	if err := f.Complete(context.Background(), key, testDone); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) bind(key, value string) string {
	f.t.Helper()
	got, err := f.Bind(context.Background(), key, value, testTTL)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

func (f *fixture) lookup(key string) dedupe.Record {
	f.t.Helper()
	r, err := f.Lookup(context.Background(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// want fails the test unless the event of key is in state.
func (f *fixture) want(key string, state dedupe.State) {
	f.t.Helper()
	if r := f.lookup(key); r.State != state {
		f.t.Errorf("%s is %v, want %v", key, r.State, state)
	}
}

// segmentFiles returns the paths of the segments, oldest first.
func (f *fixture) segmentFiles() []string {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.path, "*"+segmentSuffix))
	if err != nil {
		f.t.Fatal(err)
	}
	return names
}

func (f *fixture) lastSegment() string {
	f.t.Helper()
	names := f.segmentFiles()
	return names[len(names)-1]
}

const (
	testLease = 30 * time.Second
	testTTL   = 8 * time.Hour
)

var testDone = dedupe.Done{Mark: 77, TTL: testTTL}

func testHold(token string) dedupe.Hold {
	return dedupe.Hold{Token: token, Lease: testLease, TTL: testTTL}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
