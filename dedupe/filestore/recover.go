package filestore

import "fmt"

// fail makes every call fail until the store has recovered. The writer then
// takes back what is not written.
func (s *Store) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return
	}
	s.failed = fmt.Errorf("filestore: %s cannot be written: %w", s.disk.path(segmentName(s.current.seq)), cause)
	s.log.Error("the store has failed and answers nothing until it can write again", "error", s.failed)
	s.wakeWriter()
}

// failSync is fail after a sync: the file is not trusted any more.
func (s *Store) failSync(cause error) {
	s.mu.Lock()
	s.distrusted = true
	s.mu.Unlock()
	s.fail(cause)
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// abort takes back what is not written, and tells its callers. It runs on the
// writer, after fail.
func (s *Store) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abortLocked()
}

func (s *Store) abortLocked() {
	s.undo(s.pending)
	s.pending = newBatch(s.pending.seq+1, nil)
	if s.writing != nil {
		s.undo(s.writing)
		s.writing = nil
	}
}

// undo takes back a batch after all that came later.
func (s *Store) undo(b *batch) {
	for i := len(b.changes) - 1; i >= 0; i-- {
		c := &b.changes[i]
		if c.binding {
			s.index.bindings.del(c.hash)
		} else {
			s.index.set(c.hash, c.old)
		}
	}
	b.err = s.failed
	close(b.done)
}

// resume tries to go on in a new segment, whose header declares void what the
// current one holds beyond its synced part. If a sync has failed, nobody knows
// what of the rest is on the disk, and the new segment begins with a copy of
// it. It runs on the writer.
func (s *Store) resume() {
	s.abort()
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.syncTrusted()
	next, err := draft(s.disk, s.header(s.current.seq+1, s.current.synced), s.unsynced)
	if err == nil {
		err = next.publish(s.disk)
	}
	if err != nil {
		s.log.Debug("the store still cannot write", "error", err)
		return
	}
	old := s.current
	old.file.Close()
	// This gives space back; what is cut off is void with or without it.
	if err := s.disk.truncate(segmentName(old.seq), old.synced); err != nil {
		s.log.Warn("cannot shorten a segment", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old.size = old.synced
	next.lastExpiry = old.lastExpiry
	s.replaceCurrent(next)
	s.failed, s.distrusted = nil, false
	s.log.Info("the store writes again", "file", s.disk.path(segmentName(next.seq)))
}

// syncTrusted syncs what was written before a write failed, so that a full disk
// need not take a copy of it. The caller holds syncing.
func (s *Store) syncTrusted() {
	s.mu.Lock()
	distrusted := s.distrusted
	s.mu.Unlock()
	if distrusted {
		return
	}
	err := s.current.file.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.distrusted = true
		return
	}
	s.allSynced()
}

// replaceCurrent makes next the segment being written. All that was written
// before is on the disk. The caller holds syncing and mu.
func (s *Store) replaceCurrent(next *segment) {
	s.older = append(s.older, s.current)
	s.current.file = nil
	s.current = next
	s.marked = next.size
	s.allSynced()
}
