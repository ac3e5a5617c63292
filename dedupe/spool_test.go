package dedupe_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// spool is a Spool in memory that outlives the processes of a test.
type spool struct {
	mu     sync.Mutex
	kept   []dedupe.Completion
	closed int
	err    error
}

func (s *spool) Keep(c dedupe.Completion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.kept = append(s.kept, c)
	}
	return s.err
}

func (s *spool) Clear() error { s.mu.Lock(); defer s.mu.Unlock(); s.kept = nil; return s.err }

func (s *spool) Load() ([]dedupe.Completion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loaded := s.kept
	s.kept = nil
	return loaded, s.err
}

func (s *spool) Close() error { s.closed++; return nil }

// startWith is start with a spool; faults keep the store away from the start.
func startWith(t *testing.T, store dedupe.Store, s dedupe.Spool, faults ...fault) process {
	p := start(t, store)
	for _, f := range faults {
		p.line.from(f)
	}
	p.Gate = dedupe.New(p.line, dedupe.Options{Observer: p.seen, Spool: s})
	t.Cleanup(func() {
		if !p.line.isClosed() {
			p.line.mend()
			p.Close(t.Context())
		}
	})
	return p
}

// over is a context that is over.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestUnwrittenCompletionOutlivesTheProcess: the next one answers its copies at
// once, and writes it when the store is back.
func TestUnwrittenCompletionOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, kept := memstore.New(nil), new(spool)
		p := startWith(t, store, kept)
		unwritten(t, p, false)
		accepted := time.Now()
		if err := p.Close(over()); err != nil {
			t.Fatal(err)
		}
		if p.seen.count("spooled") != 1 || p.seen.count("lost complete") != 0 {
			t.Errorf("the observer was told %v, want spooled and not lost", p.seen.all())
		}
		pass(time.Hour)

		p = startWith(t, store, kept, lostRequest)
		if v := p.answers(dedupe.ResultDuplicate); !v.DoneAt.Equal(accepted) {
			t.Errorf("got %+v, want done at %v", v, accepted)
		}
		other := event
		other.Mark++
		if v := p.admit(other, policy); !v.Reused {
			t.Errorf("another body: got %+v, want it noticed", v)
		}
		p.line.mend()
		pass(5 * time.Second)
		if r := p.record(); r.State != dedupe.Completed || r.Mark != event.Mark {
			t.Errorf("got %+v, want it done", r)
		}
		if len(kept.kept) != 0 {
			t.Errorf("the spool still holds %v", kept.kept)
		}
	})
}

// TestCrashedProcessLeavesItsCompletions: nothing needs to be said at the end.
func TestCrashedProcessLeavesItsCompletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, kept := memstore.New(nil), new(spool)
		unwritten(t, startWith(t, store, kept), false)
		if len(kept.kept) != 1 || kept.kept[0].Key != event.Key {
			t.Fatalf("the spool holds %v, want the event as soon as it waits", kept.kept)
		}
		p := startWith(t, memstore.New(nil), kept)
		pass(5 * time.Second)
		if r := p.record(); r.State != dedupe.Completed {
			t.Errorf("got %+v, want it done", r)
		}
	})
}

// TestSpoolKeepsWhatStillWaits: it is not cleared because another event could be
// written.
func TestSpoolKeepsWhatStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(spool)
		stuck := event
		stuck.Key = dedupe.Key("orders", "stuck", "")
		p := startWith(t, stubborn{memstore.New(nil), stuck.Key, errAway}, kept)
		v := p.admit(stuck, policy)
		if err := v.Claim.Settle(dedupe.OutcomeAccepted); err == nil {
			t.Fatal("want an error")
		}
		unwritten(t, p, false)
		p.line.mend()
		pass(time.Minute)
		if r := p.record(); r.State != dedupe.Completed {
			t.Fatalf("got %+v, want the other event done", r)
		}
		if len(kept.kept) != 2 || kept.kept[0].Key != stuck.Key {
			t.Errorf("the spool holds %v, want the event that waits too", kept.kept)
		}
		p.Close(over())
	})
}

// TestSpoolThatFailsLosesNothingWhileTheProcessLives, and says so.
func TestSpoolThatFailsLosesNothingWhileTheProcessLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &spool{err: errors.New("no space")}
		p := startWith(t, memstore.New(nil), kept)
		unwritten(t, p, false)
		p.answers(dedupe.ResultDuplicate)
		if err := p.Close(over()); err != nil {
			t.Fatal(err)
		}
		if p.seen.count("spool failed") < 2 || p.seen.count("lost complete") != 1 || p.seen.count("spooled") != 0 {
			t.Errorf("the observer was told %v", p.seen.all())
		}
		if kept.closed != 1 {
			t.Errorf("the spool was closed %d times", kept.closed)
		}
	})
}

// TestOnlyCompletionsAreSpooled: for the rest the lease is enough.
func TestOnlyCompletionsAreSpooled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := new(spool)
		p := startWith(t, memstore.New(nil), kept)
		for _, o := range []dedupe.Outcome{dedupe.OutcomeRefused, dedupe.OutcomeUnanswered} {
			c := p.admit(dedupe.Event{Key: dedupe.Key("orders", string(o), "")}, policy).Claim
			p.line.from(lostRequest)
			if err := c.Settle(o); err == nil {
				t.Error("want an error")
			}
			p.line.mend()
		}
		if len(kept.kept) != 0 {
			t.Errorf("the spool holds %v", kept.kept)
		}
	})
}
