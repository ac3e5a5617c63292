package filestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestManyCallersAndFaultsAtOnce lets callers, ticks and faults run against
// each other, and then compares the directory with what was acknowledged.
func TestManyCallersAndFaultsAtOnce(t *testing.T) {
	for _, mode := range []Sync{EverySec, Always} {
		t.Run(mode.String(), func(t *testing.T) {
			f := newFixture(t)
			f.SetSync(mode)
			f.maxSegment = 20_000
			stop := make(chan struct{})
			var ticks sync.WaitGroup
			ticks.Go(func() { tickWithFaults(f, stop) })
			w := &workload{f: f}
			w.run()
			close(stop)
			ticks.Wait()
			f.disk.failing(nil)
			f.tick()
			w.check("at the end")
			f.crash()
			w.check("after opening")
			if w.refused.Load() == 0 {
				t.Log("no call met a fault")
			}
		})
	}
}

// tickWithFaults ticks without a pause, and makes one operation in a while
// fail.
func tickWithFaults(f *fixture, stop chan struct{}) {
	ops := []string{"write", "fsync", "create", "rename", "sync", "open", "truncate"}
	for {
		select {
		case <-stop:
			return
		default:
		}
		f.disk.hook(func(op, _ string) error {
			if rand.IntN(200) == 0 && op == ops[rand.IntN(len(ops))] {
				return syscall.EIO
			}
			return nil
		})
		f.tick()
	}
}

// workload is events that a few callers each fight over.
type workload struct {
	f       *fixture
	owners  [workEvents]atomic.Int32 // acknowledged owners, one at a time
	done    [workEvents]atomic.Bool
	refused atomic.Int64
}

const (
	workEvents  = 1500
	workCallers = 30
)

func (w *workload) run() {
	var all sync.WaitGroup
	for c := range workCallers {
		all.Go(func() {
			for i := range workEvents {
				w.deliver((i*7+c/3)%workEvents, fmt.Sprintf("t%d", c))
			}
		})
	}
	all.Wait()
}

// insist repeats a call until the store can answer it.
func (w *workload) insist(call func() error) {
	for call() != nil {
		w.refused.Add(1)
		runtime.Gosched()
	}
}

func (w *workload) deliver(i int, caller string) {
	ctx := context.Background()
	key, h := fmt.Sprint("s:", i), testHold(fmt.Sprintf("%s-%d", caller, i))
	wasDone := w.done[i].Load()
	var r dedupe.Record
	w.insist(func() (err error) { r, err = w.f.Claim(ctx, key, h, true); return err })
	switch {
	case wasDone && r.State != dedupe.Completed:
		w.f.t.Errorf("%s was done, and a copy was told %+v", key, r)
		return
	case r.State == dedupe.Completed && r.Mark != uint16(i):
		w.f.t.Errorf("%s is another event: %+v", key, r)
		return
	case !r.OwnedBy(h.Token):
		return
	}
	if w.owners[i].Add(1) > 1 {
		w.f.t.Errorf("%s has two owners", key)
	}
	if i%4 == 0 && r.Attempt == 1 {
		w.owners[i].Add(-1)
		w.insist(func() error { return w.f.Release(ctx, key, h) })
		return
	}
	w.insist(func() error {
		ok, err := w.f.Renew(ctx, key, h)
		if err == nil && !ok {
			w.f.t.Errorf("%s: the owner lost it", key)
		}
		return err
	})
	w.insist(func() error { return w.f.Complete(ctx, key, dedupe.Done{Mark: uint16(i), TTL: testTTL}) })
	w.done[i].Store(true)
}

func (w *workload) check(when string) {
	w.f.t.Helper()
	n := 0
	for i := range workEvents {
		if !w.done[i].Load() {
			continue
		}
		n++
		if r := w.f.lookup(fmt.Sprint("s:", i)); r.State != dedupe.Completed || r.Mark != uint16(i) {
			w.f.t.Errorf("%s: event %d was done, and is %+v", when, i, r)
		}
	}
	if n < workEvents/2 {
		w.f.t.Errorf("only %d events were done", n)
	}
}
