package filestore

import (
	"context"
	"runtime"
)

// batch is records that are written together.
type batch struct {
	seq        uint64
	buf        []byte
	changes    []change
	lastExpiry int64
	done       chan struct{} // closed when the batch is written, or has failed
	err        error         // why it has failed; set before done is closed
}

// change is what it takes to take a record back.
type change struct {
	hash    hash
	binding bool
	old     entry // of an event; a binding had none
}

func newBatch(seq uint64, spare *batch) *batch {
	b := &batch{seq: seq, done: make(chan struct{})}
	if spare != nil && cap(spare.buf) <= maxSpareBuf {
		b.buf, b.changes = spare.buf[:0], spare.changes[:0]
	}
	return b
}

// wait returns when the batch is written. No batch is written already.
func (b *batch) wait(ctx context.Context) error {
	if b == nil {
		return nil
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batchOf returns the batch seq while it is not written. The caller holds mu.
func (s *Store) batchOf(seq uint64) *batch {
	switch {
	case seq <= s.written:
		return nil
	case s.writing != nil && s.writing.seq == seq:
		return s.writing
	}
	return s.pending
}

// logEvent adds the record that e is now the state of h, and returns its batch.
// The caller holds mu.
func (s *Store) logEvent(h hash, old, e entry) uint64 {
	b := s.pending
	b.buf = appendEvent(b.buf, h, e)
	return s.logged(change{hash: h, old: old}, e.expires)
}

// logBinding is logEvent for bindings.
func (s *Store) logBinding(h hash, v binding) uint64 {
	b := s.pending
	b.buf = appendBinding(b.buf, h, v)
	return s.logged(change{hash: h, binding: true}, v.expires)
}

func (s *Store) logged(c change, expires int64) uint64 {
	b := s.pending
	b.changes = append(b.changes, c)
	b.lastExpiry = max(b.lastExpiry, expires)
	if s.writing == nil && len(b.changes) == 1 {
		s.wakeWriter()
	}
	return b.seq
}

func (s *Store) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write is the writer.
func (s *Store) write() {
	defer close(s.writerDone)
	for {
		select {
		case <-s.wake:
			runtime.Gosched() // let those who are about to call join the batch
			s.writeBatch()
		case job := <-s.jobs:
			job()
		case <-s.quit:
			return
		}
	}
}

// onWriter has the writer run job, and waits for it.
func (s *Store) onWriter(job func()) {
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		job()
	}
	<-done
}

// writeBatch writes what is pending and lets its callers go. It reports whether
// there was anything. It runs on the writer.
func (s *Store) writeBatch() bool {
	b, mode := s.take()
	if b == nil {
		return false
	}
	if err := writeAll(s.current.file, b.buf); err != nil {
		s.fail(err)
		s.abort()
		return true
	}
	if mode == Always {
		s.syncBatch(b)
		return true
	}
	if s.commit(b, false) > s.maxUnsynced {
		s.syncWritten()
	}
	return true
}

// take makes the pending batch the one being written.
func (s *Store) take() (*batch, Sync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		s.abortLocked()
		return nil, s.mode
	}
	b := s.pending
	if len(b.changes) == 0 {
		return nil, s.mode
	}
	s.writing = b
	s.pending = newBatch(b.seq+1, s.spare)
	s.spare = nil
	return b, s.mode
}

// syncBatch syncs and commits b, which was written.
func (s *Store) syncBatch(b *batch) {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if err := s.current.file.Sync(); err != nil {
		s.failSync(err)
		s.abort()
		return
	}
	s.commit(b, true)
}

// commit tells b's callers that it is written, and returns how much waits to be
// synced.
func (s *Store) commit(b *batch, synced bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil { // by a sync in the background: the file is not trusted
		s.abortLocked()
		return 0
	}
	s.appended(b.buf)
	s.current.lastExpiry = max(s.current.lastExpiry, b.lastExpiry)
	s.dirty = true
	if synced {
		s.allSynced()
	}
	for _, c := range b.changes {
		if !c.binding {
			s.index.settle(c.hash, b.seq)
		}
	}
	s.written = b.seq
	s.writing = nil
	close(b.done)
	s.spare = b
	if len(s.pending.changes) > 0 {
		s.wakeWriter()
	}
	return len(s.unsynced)
}

// appended says that data was written to the current segment.
func (s *Store) appended(data []byte) {
	s.current.size += int64(len(data))
	s.unsynced = append(s.unsynced, data...)
}

// allSynced says that the current segment is on the disk as it is.
func (s *Store) allSynced() {
	s.current.synced = s.current.size
	if s.unsynced = s.unsynced[:0]; cap(s.unsynced) > maxSpareBuf {
		s.unsynced = nil
	}
	s.dirty = false
}
