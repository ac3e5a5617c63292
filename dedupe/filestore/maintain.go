package filestore

import (
	"errors"
	"time"
)

const (
	tickEvery = time.Second

	// maxSegment closes a segment that is as large, checked at each tick.
	maxSegment = 64 << 20
	// maxUnsynced bounds the memory that waits for a slow disk.
	maxUnsynced = 64 << 20
	// A segment is closed after this part of the longest time that its records
	// live, within bounds: that is how much longer than needed they may stay.
	agePart = 32
	minAge  = time.Minute
	maxAge  = 24 * time.Hour

	// sweepTicks is how many ticks it takes to sweep everything once.
	sweepTicks = 64
)

func (s *Store) ticker() {
	defer close(s.tickerDone)
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.tick()
		case <-s.stop:
			return
		}
	}
}

// tick does all that is to be done from time to time.
func (s *Store) tick() {
	s.syncWritten()
	s.onWriter(s.tend)
	s.sweep()
	s.unlink()
}

// tend does what only the writer may do.
func (s *Store) tend() {
	if s.failure() != nil {
		s.resume()
		return
	}
	s.mark()
	if s.rotationDue() {
		s.rotate()
	}
}

// syncWritten syncs what is written so far, while the writer goes on.
func (s *Store) syncWritten() {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	if s.failed != nil || !s.dirty {
		s.mu.Unlock()
		return
	}
	g, size := s.current, s.current.size
	syncing := s.unsynced
	s.unsynced, s.spareBuf = s.spareBuf[:0], nil
	s.dirty = false
	s.mu.Unlock()

	err := g.file.Sync()
	if err != nil {
		s.failSync(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unsynced = append(syncing, s.unsynced...)
		return
	}
	g.synced = size
	if cap(syncing) <= maxSpareBuf {
		s.spareBuf = syncing
	}
}

// maxSpareBuf bounds the buffers that are kept to be used again: about what comes
// from one sync to the next at full speed.
const maxSpareBuf = 2 << 20

// mark notes in the log that what it holds is synced.
func (s *Store) mark() {
	s.mu.Lock()
	due := s.current.synced > s.marked
	now := s.instant().wall
	s.mu.Unlock()
	if !due {
		return
	}
	data := appendSynced(nil, now)
	if err := writeAll(s.current.file, data); err != nil {
		s.fail(err)
		s.abort()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appended(data)
	s.marked = s.current.size
}

func (s *Store) rotationDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.current
	if g.lastExpiry == 0 {
		return false
	}
	lives := time.Duration(g.lastExpiry-g.created) * time.Millisecond
	age := time.Duration(s.instant().wall-g.created) * time.Millisecond
	return g.size >= s.maxSegment || age >= max(minAge, min(lives/agePart, maxAge))
}

// rotate closes the current segment, all of it on the disk, and begins another.
// Callers wait meanwhile: for the sync of what little was written since the
// last one, and for the new file.
func (s *Store) rotate() {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.failure() != nil {
		return
	}
	old := s.current
	if err := old.file.Sync(); err != nil {
		s.failSync(err)
		s.abort()
		return
	}
	s.mu.Lock()
	s.allSynced()
	s.mu.Unlock()
	next, err := draft(s.disk, s.header(old.seq+1, old.size), nil)
	if err != nil {
		s.log.Warn("cannot begin a new segment; going on in the old one", "error", err)
		return
	}
	if err := next.publish(s.disk); err != nil {
		s.fail(err)
		s.abort()
		return
	}
	old.file.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaceCurrent(next)
}

// sweep drops a part of what has expired from memory, in short steps.
func (s *Store) sweep() {
	step := func(drop func(now instant)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		drop(s.instant())
	}
	x := &s.index
	for range len(x.finished.parts) / sweepTicks {
		step(func(now instant) {
			x.finished.sweep(func(f finished) bool { return f.expires() <= now.wall })
		})
	}
	for range len(x.active.parts) / sweepTicks {
		step(func(now instant) {
			x.active.sweep(func(e entry) bool { return e.expires <= now.wall })
		})
	}
	for range len(x.bindings.parts) / sweepTicks {
		step(func(now instant) {
			x.bindings.sweep(func(b binding) bool { return b.expires <= now.wall })
		})
	}
}

// unlink removes the oldest segments while all they hold has expired. Never one
// out of the middle: what it says may still overrule an older one.
func (s *Store) unlink() {
	removed := 0
	for _, g := range s.expiredSegments() {
		if err := s.disk.remove(segmentName(g.seq)); err != nil {
			s.log.Warn("cannot remove an expired segment", "error", err)
			break
		}
		removed++
	}
	if removed == 0 {
		return
	}
	s.mu.Lock()
	s.older = s.older[removed:]
	s.mu.Unlock()
	if err := s.disk.sync(); err != nil {
		s.log.Warn("cannot sync the store's directory", "error", err)
	}
}

func (s *Store) expiredSegments() []*segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.instant().wall
	for i, g := range s.older {
		if g.lastExpiry > now {
			return s.older[:i:i]
		}
	}
	return s.older[:len(s.older):len(s.older)]
}

// finish ends the writing in good order. It runs on the writer, when no call
// can come any more.
func (s *Store) finish() error {
	for s.writeBatch() {
	}
	if s.failure() != nil {
		s.resume()
	}
	s.syncWritten()
	if s.failure() == nil {
		s.mark()
	}
	return errors.Join(s.failure(), s.current.file.Close())
}
