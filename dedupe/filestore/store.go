package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

var _ dedupe.Store = (*Store)(nil)

// Store is a [dedupe.Store] in a local directory. All methods are safe for
// concurrent use.
//
// One goroutine, the writer, writes batches of records and replaces segments.
// Another one ticks: it syncs in the background, sweeps, and unlinks.
type Store struct {
	disk   disk
	lock   io.Closer
	log    *slog.Logger
	now    func() time.Time
	opened time.Time
	seed   [seedSize]byte

	maxSegment  int64
	maxUnsynced int

	// syncing is held while a file is synced or replaced. An error of a sync is
	// reported once: two at a time could hide it from each other. It is taken
	// before mu.
	syncing sync.Mutex

	mu      sync.Mutex
	mode    Sync
	closed  bool
	failed  error // why no call can be answered
	index   index
	pending *batch // takes records
	writing *batch // being written, or nil
	spare   *batch // whose memory can be used again
	written uint64 // the last batch written

	current *segment   // being written; replaced by the writer only
	older   []*segment // oldest first

	// unsynced holds what was written to current past its synced part: should a
	// sync fail, that must be written again elsewhere.
	unsynced []byte
	spareBuf []byte
	dirty    bool  // there are records to sync
	marked   int64 // where current's last mark of a sync ends

	distrusted bool // a sync of current has failed

	wake       chan struct{} // the writer has something to do
	jobs       chan func()   // run by the writer, between batches
	stop       chan struct{} // ends the ticker
	tickerDone chan struct{}
	quit       chan struct{} // ends the writer
	writerDone chan struct{}
}

// setup is what tests change of a store.
type setup struct {
	disk     disk
	lockWait time.Duration
	noTicks  bool
}

// Open opens the store in directory path, which is made if it is not there. It
// returns an error that wraps [ErrLocked] if the directory is in use, and a
// [DamageError] if it cannot be read in full.
func Open(path string, o Options) (*Store, error) {
	return open(path, o, setup{disk: dir(path), lockWait: lockWait})
}

func open(path string, o Options, with setup) (*Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	lock, err := lockDir(path, with.lockWait)
	if err != nil {
		return nil, err
	}
	s := newStore(o, with.disk)
	s.lock = lock
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	go s.write()
	if with.noTicks {
		close(s.tickerDone)
	} else {
		go s.ticker()
	}
	return s, nil
}

func newStore(o Options, d disk) *Store {
	s := &Store{
		disk:        d,
		log:         o.Logger,
		now:         o.Now,
		maxSegment:  maxSegment,
		maxUnsynced: maxUnsynced,
		mode:        o.Sync,
		index:       newIndex(),
		pending:     newBatch(1, nil),
		wake:        make(chan struct{}, 1),
		jobs:        make(chan func()),
		stop:        make(chan struct{}),
		tickerDone:  make(chan struct{}),
		quit:        make(chan struct{}),
		writerDone:  make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.opened = s.now()
	return s
}

// load replays the directory and makes it ready for writing.
func (s *Store) load() error {
	r := &replay{disk: s.disk, log: s.log, index: &s.index, now: s.instant()}
	segments, err := r.run()
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		err = s.create()
	} else {
		s.seed = r.seed
		s.older, s.current = segments[:len(segments)-1], segments[len(segments)-1]
		s.marked = s.current.size
		s.current.file, err = s.disk.open(segmentName(s.current.seq))
		if err == nil {
			err = errors.Join(s.current.file.Sync(), s.disk.sync())
		}
	}
	if err != nil {
		if s.current != nil && s.current.file != nil {
			s.current.file.Close()
		}
		return fmt.Errorf("filestore: cannot write to the store: %w", err)
	}
	return nil
}

// create makes the first segment of a directory.
func (s *Store) create() error {
	rand.Read(s.seed[:]) // never fails
	g, err := draft(s.disk, s.header(1, 0), nil)
	if err != nil {
		return err
	}
	s.current, s.marked = g, g.size
	return g.publish(s.disk)
}

func (s *Store) header(seq uint64, prev int64) header {
	return header{seq: seq, created: s.now().UnixMilli(), prev: uint64(prev), seed: s.seed}
}

func (s *Store) instant() instant {
	now := s.now()
	return instant{wall: now.UnixMilli(), mono: now.Sub(s.opened)}
}

// SetSync changes the mode for all later calls.
func (s *Store) SetSync(mode Sync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

// Err returns why calls fail at present: a failed write or sync that the store
// has not got over yet, or [ErrClosed]. It is nil while the store works.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.failed
}

// Stats is what a store holds. Events and bindings that have expired count
// until they are swept, which takes about a minute.
type Stats struct {
	// Done counts finished events, and Active those in any other state.
	Done, Active int
	// Bindings counts the values that are tied to keys.
	Bindings int
	// Segments and Bytes say how many files the log has, and their size.
	Segments int
	Bytes    int64
}

// Stats returns what the store holds at present.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Done:     s.index.finished.count,
		Active:   s.index.active.count,
		Bindings: s.index.bindings.count,
		Segments: len(s.older) + 1,
		Bytes:    s.current.size,
	}
	for _, g := range s.older {
		st.Bytes += g.size
	}
	return st
}

// Close waits for the calls under way, syncs what is written whatever the mode,
// and lets go of the directory. Later calls return [ErrClosed], a second Close
// nil. An error says that what was answered may not survive a power cut.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	close(s.stop)
	<-s.tickerDone
	var err error
	s.onWriter(func() { err = s.finish() })
	close(s.quit)
	<-s.writerDone
	return errors.Join(err, s.lock.Close())
}
