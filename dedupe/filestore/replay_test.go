package filestore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// state is what the log at an offset says of the keys of a small log.
type state struct {
	end    int64
	states map[string]dedupe.State
	value  string
}

var smallKeys = []string{"s:1", "s:2", "s:3"}

// smallLog writes some records of every kind, and notes after each what it
// leads to.
func smallLog(f *fixture) []state {
	f.t.Helper()
	ctx := context.Background()
	var after []state
	note := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
		st := state{end: f.Stats().Bytes, states: map[string]dedupe.State{}}
		for _, key := range smallKeys {
			st.states[key] = f.lookup(key).State
		}
		if b, ok := f.index.bindings.get(hashKey(f.seed, "b")); ok {
			st.value = b.value
		}
		after = append(after, st)
	}
	note(nil)
	for _, key := range smallKeys {
		f.claim(key, "a")
		note(nil)
	}
	note(f.Complete(ctx, "s:1", testDone))
	note(f.Release(ctx, "s:2", testHold("a")))
	note(f.Doubt(ctx, "s:3", testHold("a")))
	f.bind("b", "v")
	note(nil)
	return after
}

// at is the state of the last whole record before offset.
func at(states []state, offset int64) state {
	i := slices.IndexFunc(states, func(s state) bool { return s.end > offset })
	switch {
	case i < 0:
		return states[len(states)-1]
	case i == 0:
		return state{states: map[string]dedupe.State{}} // not even the header
	}
	return states[i-1]
}

func checkState(f *fixture, want state) {
	f.t.Helper()
	for _, key := range smallKeys {
		f.want(key, want.states[key])
	}
	want.value = cmpOr(want.value, "other")
	if got := f.bind("b", "other"); got != want.value {
		f.t.Errorf("the binding is %q, want %q", got, want.value)
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestLogCutOffAtAnyByteKeepsWhatIsWhole(t *testing.T) {
	f := newFixture(t)
	states := smallLog(f)
	f.kill()
	name := f.lastSegment()
	whole := readFile(t, name)
	if int64(len(whole)) != states[len(states)-1].end {
		t.Fatal("the log has another size than the store says")
	}
	for size := range len(whole) + 1 {
		writeFile(t, name, whole[:size])
		f.logs.Reset()
		f.open()
		checkState(f, at(states, int64(size)))
		cut := !slices.ContainsFunc(states, func(s state) bool { return s.end == int64(size) })
		if told := f.logs.Len() > 0; told != cut {
			t.Errorf("cut at %d: told about it: %v, want %v", size, told, cut)
		}
		f.complete("s:9") // and it goes on from there
		f.crash()
		f.want("s:9", dedupe.Completed)
		f.kill()
	}
	f.open()
}

func TestGarbageAtTheEndIsCutOff(t *testing.T) {
	f := newFixture(t)
	states := smallLog(f)
	f.kill()
	name := f.lastSegment()
	whole := readFile(t, name)
	frame := appendSynced(nil, 5)
	for what, garbage := range map[string][]byte{
		"zeros":             make([]byte, 8192),
		"ones":              bytes.Repeat([]byte{0xff}, 300),
		"text":              []byte(strings.Repeat("not a record ", 40)),
		"half a record":     frame[:len(frame)-1],
		"a length only":     {40, 0},
		"an impossible one": {0xff, 0xff, 1, 2, 3, 4},
		"a damaged record":  append(bytes.Clone(frame[:len(frame)-1]), frame[len(frame)-1]^1),
	} {
		writeFile(t, name, append(bytes.Clone(whole), garbage...))
		f.logs.Reset()
		f.open()
		checkState(f, states[len(states)-1])
		if !strings.Contains(f.logs.String(), "cutting off") || !strings.Contains(f.logs.String(), name) {
			t.Errorf("%s: the log says %q", what, f.logs)
		}
		f.kill()
		if !bytes.HasPrefix(readFile(t, name), whole) {
			t.Errorf("%s: more was cut off than the garbage", what)
		}
	}
	f.open()
}

func TestLeftoversOfAStartAreClearedAway(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.close()
	draft := filepath.Join(f.path, segmentName(2)+draftSuffix)
	foreign := filepath.Join(f.path, "README.txt")
	writeFile(t, draft, []byte("half"))
	writeFile(t, foreign, []byte("keep me"))
	writeFile(t, filepath.Join(f.path, segmentName(2)), []byte("half a header"))
	f.open()
	f.want("s:1", dedupe.Completed)
	if _, err := os.Stat(draft); !errors.Is(err, os.ErrNotExist) {
		t.Error("the draft is still there")
	}
	readFile(t, foreign)
	if f.current.seq != 1 {
		t.Errorf("writing segment %d, want 1", f.current.seq)
	}
}

func TestLeasesRestartInFullWhenOpened(t *testing.T) {
	f := newFixture(t)
	f.claim("s:1", "a")
	f.claim("s:2", "a")
	if err := f.Doubt(context.Background(), "s:2", testHold("a")); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(testLease + time.Second)
	f.crash()
	for _, key := range []string{"s:1", "s:2"} {
		if left := f.lookup(key).LeaseLeft; left != testLease {
			t.Errorf("%s: the lease has %v left, want all of it", key, left)
		}
		if r := f.claim(key, "b"); r.OwnedBy("b") {
			t.Errorf("%s was taken over at once", key)
		}
	}
	f.clock.advance(testLease)
	if r := f.claim("s:1", "b"); !r.OwnedBy("b") || !r.Doubted || r.Attempt != 2 {
		t.Errorf("after a full lease: %+v", r)
	}
}

func TestExpiredRecordsEndWhatOlderOnesSay(t *testing.T) {
	f := newFixture(t)
	f.claim("s:1", "a") // for testTTL
	err := f.Complete(context.Background(), "s:1", dedupe.Done{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	f.clock.advance(2 * time.Minute)
	f.crash()
	f.want("s:1", dedupe.Absent)
}

func TestEventsSurviveReopeningWithTheirHashes(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	seed := f.seed
	f.reopen()
	if f.seed != seed {
		t.Error("the seed has changed")
	}
	if r := f.lookup("s:1"); r.State != dedupe.Completed || r.Mark != testDone.Mark || r.Left != testTTL {
		t.Errorf("got %+v", r)
	}
	if other := newFixture(t); other.seed == seed {
		t.Error("two directories share a seed")
	}
}
