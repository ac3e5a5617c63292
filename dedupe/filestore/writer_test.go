package filestore

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestNobodyIsToldBeforeItIsWritten holds the write of a record back, and looks
// who answers meanwhile.
func TestNobodyIsToldBeforeItIsWritten(t *testing.T) {
	for _, mode := range []Sync{EverySec, Always} {
		for _, fault := range []error{nil, syscall.ENOSPC} {
			t.Run(fmt.Sprintf("%v, %v", mode, fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testNobodyIsTold(t, mode, fault) })
			})
		}
	}
}

func testNobodyIsTold(t *testing.T, mode Sync, fault error) {
	f := newFixture(t)
	f.SetSync(mode)
	f.complete("s:old")
	f.claim("s:1", "a")
	op := "write"
	if mode == Always {
		op = "fsync"
	}
	g := holdBack(f, op)
	ctx := context.Background()
	calls := map[string]call{"complete": start(func() error { return f.Complete(ctx, "s:1", testDone) })}
	// These see it in memory only. The claim after it waits for the next write.
	calls["claim"] = start(func() error {
		r, err := f.Claim(ctx, "s:1", testHold("b"), true)
		if err == nil && r.State != dedupe.Completed {
			return fmt.Errorf("the copy was told %v", r.State)
		}
		return err
	})
	calls["release"] = start(func() error { return f.Release(ctx, "s:1", testHold("a")) })
	calls["complete again"] = start(func() error { return f.Complete(ctx, "s:1", testDone) })
	calls["look up"] = start(func() error { _, err := f.Lookup(ctx, "s:1"); return err })
	other := start(func() error { _, err := f.Claim(ctx, "s:2", testHold("b"), true); return err })
	sees := start(func() error { _, err := f.Claim(ctx, "s:2", testHold("c"), true); return err })
	ends := start(func() error { return f.Complete(ctx, "s:2", testDone) })

	for name, c := range calls {
		if err, ok := c.returned(); ok {
			t.Errorf("%s returned %v before the record was written", name, err)
		}
	}
	if r := f.lookup("s:old"); r.State != dedupe.Completed {
		t.Error("what is written had to wait")
	}
	g.pass <- fault
	for name, c := range calls {
		if err, ok := c.returned(); !ok || !errors.Is(err, fault) {
			t.Errorf("%s, once it was: returned %v, %v", name, ok, err)
		}
	}
	if fault == nil {
		if _, ok := other.returned(); ok {
			t.Error("the next batch returned before it was written")
		}
		g.pass <- nil
	}
	for _, c := range []call{other, sees, ends} {
		if err, ok := c.returned(); !ok || !errors.Is(err, fault) {
			t.Errorf("the next batch: returned %v, %v", ok, err)
		}
	}
	close(g.pass)
	if fault == nil {
		return
	}
	f.tick()
	if r := f.lookup("s:1"); !r.OwnedBy("a") {
		t.Errorf("after the fault, the event is %+v, want it as it was before", r)
	}
	f.want("s:2", dedupe.Absent)
}

// TestNextRecordOfAnEventIsAwaitedToo: while the claim is being written, the
// completion joins the next batch.
func TestNextRecordOfAnEventIsAwaitedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := holdBack(f, "write")
		ctx := context.Background()
		claim := start(func() error { _, err := f.Claim(ctx, "s:1", testHold("a"), true); return err })
		done := start(func() error { return f.Complete(ctx, "s:1", testDone) })
		g.pass <- nil
		if err, ok := claim.returned(); !ok || err != nil {
			t.Errorf("the claim: returned %v, %v", ok, err)
		}
		lookup := start(func() error { _, err := f.Lookup(ctx, "s:1"); return err })
		for _, c := range []call{done, lookup} {
			if _, ok := c.returned(); ok {
				t.Error("told of the completion before it was written")
			}
		}
		g.pass <- nil
		for _, c := range []call{done, lookup} {
			if err, ok := c.returned(); !ok || err != nil {
				t.Errorf("returned %v, %v", ok, err)
			}
		}
		close(g.pass)
	})
}

// TestFailedWriteTakesBackWhatWaitedBehindIt: the second step on an event goes
// with the first, on which it rests.
func TestFailedWriteTakesBackWhatWaitedBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.claim("s:before", "a")
		g := holdBack(f, "write")
		ctx := context.Background()
		var calls []call
		for _, key := range []string{"s:1", "s:before"} {
			h := testHold("a")
			calls = append(calls,
				start(func() error { return f.Doubt(ctx, key, h) }),
				start(func() error { return f.Complete(ctx, key, testDone) }))
		}
		g.pass <- syscall.EIO
		for _, c := range calls {
			if err, ok := c.returned(); !ok || !errors.Is(err, syscall.EIO) {
				t.Errorf("returned %v, %v", err, ok)
			}
		}
		close(g.pass)
		f.tick()
		f.want("s:1", dedupe.Absent)
		f.want("s:before", dedupe.InFlight)
	})
}

// TestCloseAnswersTheCallsUnderWay: one whose batch is being written, and one
// whose batch is next.
func TestCloseAnswersTheCallsUnderWay(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			g := holdBack(f, "write")
			var calls []call
			for i := range 3 {
				calls = append(calls, start(func() error {
					return f.Complete(context.Background(), fmt.Sprint("s:", i), testDone)
				}))
			}
			calls = append(calls, start(f.Store.Close))
			close(g.pass)
			for _, c := range calls {
				if err, ok := c.returned(); !ok || err != nil {
					t.Errorf("returned %v, %v", ok, err)
				}
			}
			f.open()
			for i := range 3 {
				f.want(fmt.Sprint("s:", i), dedupe.Completed)
			}
		})
	}
}

func TestCallersThatComeTogetherShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := holdBack(f, "write")
		ctx := context.Background()
		calls := []call{start(func() error { return f.Complete(ctx, "s:first", testDone) })}
		for i := range 20 {
			calls = append(calls, start(func() error { return f.Complete(ctx, fmt.Sprint("s:", i), testDone) }))
		}
		g.pass <- nil
		g.pass <- nil
		for _, c := range calls {
			if err, ok := c.returned(); !ok || err != nil {
				t.Errorf("returned %v, %v", ok, err)
			}
		}
		if g.arrived != 2 {
			t.Errorf("%d writes, want 2", g.arrived)
		}
		close(g.pass)
	})
}

func TestCallerGivesUpWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		g := holdBack(f, "write")
		ctx, cancel := context.WithCancel(context.Background())
		c := start(func() error { return f.Complete(ctx, "s:1", testDone) })
		cancel()
		if err, ok := c.returned(); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("returned %v, %v", ok, err)
		}
		if _, err := f.Lookup(ctx, "s:2"); !errors.Is(err, context.Canceled) {
			t.Errorf("a call without time: %v", err)
		}
		close(g.pass)
		f.want("s:1", dedupe.Completed) // the write was under way
	})
}
