package dedupe

import (
	"context"
	"errors"
	"sync"
	"time"
)

// SettlementKind is what a settlement does to its record.
type SettlementKind string

// The kinds of settlements, named for the store's methods.
const (
	complete SettlementKind = "complete"
	release  SettlementKind = "release"
	doubt    SettlementKind = "doubt"
)

// settlement is the end of a claim, as it is to be written.
type settlement struct {
	kind SettlementKind
	key  string
	hold Hold
	done Done
	at   time.Time // of a completion
	kept bool      // a completion that outlives the process
	// flight answers for the event until a completion is written.
	flight *flight
}

// How many settlements wait at most. A completion that is lost may cost a
// repeat, so many are kept. A release or a doubt that is lost costs no more
// than one lease, and a store outage makes one per refused delivery.
const (
	maxCompletions = 100_000
	maxOthers      = 1_000
)

// The pace at which the store is tried again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// backlog keeps the settlements that the store could not take, and writes them
// when it can. Its goroutine runs only while something waits.
type backlog struct {
	gate *Gate

	mu          sync.Mutex
	completions []settlement
	others      []settlement
	othersTurn  bool // a completion has just failed
	running     bool
	idle        *sync.Cond    // nothing runs any more
	closing     chan struct{} // closed by close: do not pause
	closed      bool          // closed, and ctx is over: do not try either
}

func newBacklog(g *Gate) *backlog {
	b := &backlog{gate: g, closing: make(chan struct{})}
	b.idle = sync.NewCond(&b.mu)
	return b
}

// add keeps s, which the store could not take because of err, until it is
// written. What does not fit is lost.
func (b *backlog) add(s settlement, err error) {
	b.mu.Lock()
	queue, limit := b.queueOf(s)
	if len(*queue) >= limit || b.closed {
		b.mu.Unlock()
		b.lose(s)
		return
	}
	*queue = append(*queue, b.keep(s))
	if !b.running {
		b.running = true
		go b.run()
	}
	b.mu.Unlock()
	b.gate.observer.Deferred(s.key, s.kind, err)
}

func (b *backlog) queueOf(s settlement) (queue *[]settlement, limit int) {
	if s.kind == complete {
		return &b.completions, maxCompletions
	}
	return &b.others, maxOthers
}

// run writes what waits, oldest first, completions before all, pausing while
// the store fails. What fails goes to the end of its queue and lets the other
// queue try once: one record that cannot be written keeps nothing else waiting.
func (b *backlog) run() {
	pause := firstRetry
	for {
		s, ok := b.next()
		if !ok {
			return
		}
		err := b.gate.write(s)
		if err == nil {
			b.drop(s)
			b.gate.observer.Written(s.key, s.kind)
			pause = firstRetry
			continue
		}
		if s.kind != complete && errors.Is(err, ErrCorrupt) {
			b.drop(s) // the record is nobody's to settle, and stays so
			b.gate.observer.Lost(s.key, s.kind)
			continue
		}
		b.turn(s)
		rang, stop := alarm(b.gate.clock, pause)
		select {
		case <-rang:
		case <-b.closing:
			stop()
			<-after(b.gate.clock, firstRetry)
		}
		pause = min(2*pause, lastRetry)
	}
}

func after(c Clock, d time.Duration) <-chan struct{} {
	rang, _ := alarm(c, d)
	return rang
}

// next is the settlement to write, or false when there is none and run ends.
func (b *backlog) next() (settlement, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case len(b.completions) > 0 && !(b.othersTurn && len(b.others) > 0):
		return b.completions[0], true
	case len(b.others) > 0:
		return b.others[0], true
	}
	b.running = false
	b.idle.Broadcast()
	return settlement{}, false
}

// turn moves s, the first of its queue, to the end.
func (b *backlog) turn(s settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue, _ := b.queueOf(s)
	*queue = append((*queue)[1:], s)
	b.othersTurn = s.kind == complete
}

// drop takes s, the first of its queue, away.
func (b *backlog) drop(s settlement) {
	b.mu.Lock()
	queue, _ := b.queueOf(s)
	*queue = (*queue)[1:]
	b.othersTurn = false
	if s.kept && len(b.completions) == 0 {
		b.spooled(b.gate.spool.Clear())
	}
	b.mu.Unlock()
	if s.flight != nil {
		b.gate.flights.forget(s.flight)
	}
}

// keep puts a completion where it outlives the process.
func (b *backlog) keep(s settlement) settlement {
	if s.kind == complete && b.gate.spool != nil {
		s.kept = b.spooled(b.gate.spool.Keep(Completion{Key: s.key, Done: s.done, At: s.at}))
	}
	return s
}

// spooled reports whether the spool did what it was asked.
func (b *backlog) spooled(err error) bool {
	if err != nil {
		b.gate.observer.SpoolFailed(err)
	}
	return err == nil
}

func (b *backlog) lose(s settlement) {
	if s.flight != nil {
		b.gate.flights.forget(s.flight)
	}
	b.gate.observer.Lost(s.key, s.kind)
}

// close tries to write what waits until ctx is over, and gives up the rest.
func (b *backlog) close(ctx context.Context) {
	close(b.closing)
	giveUp := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closed = true
	})
	defer giveUp()
	b.mu.Lock()
	for b.running {
		b.idle.Wait()
	}
	b.closed = true
	rest := append(b.completions, b.others...)
	b.completions, b.others = nil, nil
	b.mu.Unlock()
	for _, s := range rest {
		if s.kept {
			b.gate.observer.Spooled(s.key)
		} else {
			b.lose(s)
		}
	}
}
