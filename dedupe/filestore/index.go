package filestore

import (
	"crypto/sha256"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// hash stands for a key.
type hash [16]byte

// seedSize is chosen so that seed and a common key fit one block of SHA-256.
const seedSize = 16

// hashKey is a hash that a sender cannot steer, since it does not know the seed.
func hashKey(seed [seedSize]byte, key string) hash {
	var space [256]byte
	b := append(space[:0], seed[:]...)
	b = append(b, key...)
	sum := sha256.Sum256(b)
	return hash(sum[:16])
}

// instant is one reading of the clock.
type instant struct {
	wall int64         // Unix milliseconds
	mono time.Duration // since the store was opened
}

func (t instant) after(ttl time.Duration) int64 { return t.wall + milliseconds(ttl) }

// entry is an event's state with its times as instants.
type entry struct {
	token    string
	lease    time.Duration // its full length
	leaseEnd time.Duration // as instant.mono
	expires  int64         // as instant.wall
	kept     int64         // expires as the log has it
	seq      uint64        // the batch of the record; no caller is told before that is written
	attempt  int
	mark     uint16
	state    dedupe.State
	doubted  bool
}

func (e entry) record(now instant) dedupe.Record {
	if e.state == dedupe.Absent {
		return dedupe.Record{}
	}
	r := dedupe.Record{
		State: e.state, Token: e.token, Attempt: e.attempt, Doubted: e.doubted,
		Left: time.Duration(e.expires-now.wall) * time.Millisecond, Mark: e.mark,
	}
	if e.state == dedupe.InFlight || e.state == dedupe.InDoubt {
		r.LeaseLeft = max(0, e.leaseEnd-now.mono)
	}
	return r
}

// finished is all that is kept of a done event whose record is written: expiry
// and mark in one word, so that the garbage collector has nothing to follow.
type finished uint64

func finish(e entry) finished { return finished(e.expires)<<16 | finished(e.mark) }

func (f finished) expires() int64 { return int64(f >> 16) }

func (f finished) entry() entry {
	return entry{state: dedupe.Completed, mark: uint16(f), expires: f.expires()}
}

// binding is a value that is tied to a key.
type binding struct {
	value   string
	expires int64
	seq     uint64
}

// index is the state of all keys.
type index struct {
	// active holds events in flight, in doubt and failed, and done ones whose
	// record is not written yet.
	active   table[entry]
	finished table[finished]
	bindings table[binding]
}

func newIndex() index {
	return index{
		active:   newTable[entry](64),
		finished: newTable[finished](1024),
		bindings: newTable[binding](64),
	}
}

// event returns the state of h at now.
func (x *index) event(h hash, now instant) entry {
	if e, ok := x.active.get(h); ok {
		if e.expires > now.wall {
			return e
		}
		return entry{}
	}
	f, ok := x.finished.get(h)
	switch {
	case !ok:
		return entry{}
	case f.expires() <= now.wall:
		x.finished.del(h)
		return entry{}
	}
	return f.entry()
}

// set makes e the state of h, which is not finished.
func (x *index) set(h hash, e entry) {
	if e.state == dedupe.Absent {
		x.active.del(h)
		return
	}
	x.active.set(h, e)
}

// settle moves h, if it is done, to where done events take little memory.
func (x *index) settle(h hash, seq uint64) {
	if e, ok := x.active.get(h); ok && e.state == dedupe.Completed && e.seq <= seq {
		x.active.del(h)
		x.finished.set(h, finish(e))
	}
}

// apply takes over a record of the log. Expired ones count too: they end what
// older records say.
func (x *index) apply(r record, now instant) {
	over := r.expires <= now.wall
	switch {
	case r.kind == kindSynced:
	case r.kind == kindBinding && over:
		x.bindings.del(r.hash)
	case r.kind == kindBinding:
		x.bindings.set(r.hash, binding{value: r.value, expires: r.expires})
	case over:
		x.active.del(r.hash)
		x.finished.del(r.hash)
	case r.kind == kindDone:
		x.active.del(r.hash)
		x.finished.set(r.hash, finish(r.event))
	default:
		x.finished.del(r.hash)
		r.event.kept = r.expires
		r.event.leaseEnd = now.mono + r.event.lease
		x.set(r.hash, r.event)
	}
}
