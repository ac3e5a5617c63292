package dedupe

import (
	"sync"
	"time"
)

// flights are the events that are under way in this process, or are watched by
// it, and those that are done here while the store does not know yet. They let
// copies find each other without asking the store.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight
}

// flight is one event under way.
type flight struct {
	key string
	// asked is given when the store has said that the event is under way. Until
	// that, or the end, nobody knows whether there is anything to wait for.
	asked signal
	// done is given at the end; verdict and err, for the copies that waited,
	// are set before.
	done    signal
	verdict Verdict
	err     error

	mu    sync.Mutex
	until time.Time
}

// join returns the flight of key. If there is none it makes one, and first is
// true: the caller must end it.
func (fs *flights) join(key string) (f *flight, first bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f, ok := fs.byKey[key]; ok {
		return f, false
	}
	f = &flight{key: key}
	fs.byKey[key] = f
	return f, true
}

// end ends f for those who wait and takes it away.
func (fs *flights) end(f *flight, v Verdict, err error) {
	f.verdict, f.err = v, err
	fs.forget(f)
	f.done.give()
}

// land ends f for those who wait but keeps it, so that copies that come later
// get the same verdict until it is forgotten.
func (fs *flights) land(f *flight, v Verdict) {
	f.verdict = v
	f.done.give()
}

// forget takes f away, if it is still the flight of its key.
func (fs *flights) forget(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byKey[f.key] == f {
		delete(fs.byKey, f.key)
	}
}

// put makes f, which is over, the flight of its key. Whoever waits for another
// one goes on waiting for that.
func (fs *flights) put(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.byKey[f.key] = f
}

// stay says that somebody waits for f until t.
func (fs *flights) stay(f *flight, t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.After(f.until) {
		f.until = t
	}
}

// stays is until when somebody waits for f.
func (f *flight) stays() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until
}

// underWay reports whether the store has said that the event is.
func (f *flight) underWay() bool { return f.asked.wasGiven() }

func (f *flight) over() bool { return f.done.wasGiven() }
