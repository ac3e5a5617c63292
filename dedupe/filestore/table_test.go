package filestore

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func nthHash(i int) hash {
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], uint64(i))
	return hashKey([seedSize]byte{9}, string(key[:]))
}

func TestTableCountsWhatItHolds(t *testing.T) {
	tab := newTable[int](16)
	for i := range 1000 {
		tab.set(nthHash(i), i)
		tab.set(nthHash(i), i+1)
	}
	for i := range 500 {
		tab.del(nthHash(i))
		tab.del(nthHash(i))
	}
	if tab.count != 500 {
		t.Errorf("the count is %d, want 500", tab.count)
	}
	if _, ok := tab.get(nthHash(3)); ok {
		t.Error("a deleted one is there")
	}
	if v, ok := tab.get(nthHash(700)); !ok || v != 701 {
		t.Errorf("got %d, %v", v, ok)
	}
}

func TestSweepGoesThroughAllPartsAndShrinksThem(t *testing.T) {
	tab := newTable[int](4)
	for i := range 4000 {
		tab.set(nthHash(i), i)
	}
	for range tab.parts {
		tab.sweep(func(v int) bool { return v%10 != 0 })
	}
	if tab.count != 400 {
		t.Errorf("%d are left, want 400", tab.count)
	}
	for i, p := range tab.parts {
		if p.peak != len(p.m) {
			t.Errorf("part %d was not shrunk: %d of %d", i, len(p.m), p.peak)
		}
	}
	for i := range 4000 {
		if _, ok := tab.get(nthHash(i)); ok != (i%10 == 0) {
			t.Fatalf("%d is there: %v", i, ok)
		}
	}
	for range tab.parts {
		tab.sweep(func(int) bool { return true })
	}
	if tab.count != 0 || tab.parts[0].m != nil {
		t.Errorf("an empty table holds %d", tab.count)
	}
	tab.set(nthHash(1), 1)
	if tab.count != 1 {
		t.Error("an emptied table takes nothing")
	}
}

func TestFinishedKeepsMarkAndExpiry(t *testing.T) {
	for _, e := range []entry{
		{state: dedupe.Completed, mark: dedupe.MaxMark, expires: 1_800_000_000_123},
		{state: dedupe.Completed, mark: 65535, expires: 1<<48 - 1},
		{state: dedupe.Completed},
	} {
		if got := finish(e).entry(); got != e {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
}

// TestLaterRecordOverrulesWhateverItSays applies every kind of record after
// every other, expired ones too.
func TestLaterRecordOverrulesWhateverItSays(t *testing.T) {
	now := instant{wall: 1000}
	event := func(state dedupe.State, expires int64) record {
		k := map[dedupe.State]kind{dedupe.Completed: kindDone, dedupe.InFlight: kindInFlight, dedupe.Failed: kindFailed}[state]
		return record{kind: k, hash: testHash, expires: expires, event: entry{state: state, expires: expires}}
	}
	var all []record
	for _, state := range []dedupe.State{dedupe.InFlight, dedupe.Failed, dedupe.Completed} {
		all = append(all, event(state, 1000), event(state, 1001))
	}
	for _, first := range all {
		for _, then := range all {
			x := newIndex()
			x.apply(first, now)
			x.apply(then, now)
			want, count := then.event.state, 1
			if then.expires <= now.wall {
				want, count = dedupe.Absent, 0
			}
			got := x.event(testHash, now).state
			if n := x.active.count + x.finished.count; got != want || n != count {
				t.Errorf("%+v after %+v: %v, %d entries", then, first, got, n)
			}
		}
	}
	x := newIndex()
	x.apply(record{kind: kindBinding, hash: testHash, expires: 1001, value: "v"}, now)
	x.apply(record{kind: kindBinding, hash: testHash, expires: 1000, value: "w"}, now)
	if x.bindings.count != 0 {
		t.Error("an expired binding does not end an older one")
	}
}

func TestHashDependsOnSeedAndEveryByte(t *testing.T) {
	seed, other := [seedSize]byte{1}, [seedSize]byte{2}
	seen := map[hash]string{}
	long := string(make([]byte, 1000))
	for _, key := range []string{"", "a", "b", "ab", "a\x00", long, long + "\x00"} {
		h := hashKey(seed, key)
		if was, ok := seen[h]; ok {
			t.Errorf("%.10q and %.10q share a hash", was, key)
		}
		seen[h] = key
		if hashKey(other, key) == h {
			t.Errorf("%.10q: the seed does not matter", key)
		}
		if hashKey(seed, key) != h {
			t.Errorf("%.10q: the hash is not stable", key)
		}
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	if n := testing.AllocsPerRun(100, func() { hashKey([seedSize]byte{1}, "paymos:evt_4f7a2c9e81b35d60a2c4") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSweptMemoryIsGivenBack(t *testing.T) {
	f := newFixture(t)
	before := heap()
	const n = 100_000
	now := f.instant()
	f.mu.Lock()
	for i := range n {
		f.index.finished.set(nthHash(i), finish(entry{expires: now.after(time.Minute)}))
	}
	f.mu.Unlock()
	full := heap() - before
	f.clock.advance(time.Minute)
	for range sweepTicks {
		f.sweep()
	}
	if left := heap() - before; left > full/10 {
		t.Errorf("%d of %d bytes are still held", left, full)
	}
	if st := f.Stats(); st.Done != 0 {
		t.Errorf("%d are still there", st.Done)
	}
	runtime.KeepAlive(f)
}
