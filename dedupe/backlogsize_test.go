package dedupe

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// deaf is a store that takes no completion.
type deaf struct{ Store }

func (deaf) Complete(context.Context, string, Done) error { return errors.New("deaf") }
func (deaf) Close() error                                 { return nil }

type counting struct {
	nobody
	deferred, lost atomic.Int64
}

func (c *counting) Deferred(string, SettlementKind, error) { c.deferred.Add(1) }
func (c *counting) Spooled(string)                         {}
func (c *counting) SpoolFailed(error)                      {}
func (c *counting) Lost(string, SettlementKind)            { c.lost.Add(1) }

// TestBacklogOfCompletionsIsBounded: what does not fit is reported, and so is
// all of it when the process ends.
func TestBacklogOfCompletionsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &counting{}
		g := New(deaf{}, Options{Observer: seen})
		for range 100_000 + 4 {
			g.backlog.add(settlement{kind: complete, key: "orders:evt"}, errors.New("deaf"))
		}
		last, _ := g.flights.join("orders:last")
		g.flights.land(last, Verdict{Result: ResultDuplicate})
		g.backlog.add(settlement{kind: complete, key: last.key, flight: last}, errors.New("deaf"))
		if kept, lost := seen.deferred.Load(), seen.lost.Load(); kept != 100_000 || lost != 5 {
			t.Errorf("%d kept, %d lost", kept, lost)
		}
		if _, first := g.flights.join(last.key); !first {
			t.Error("copies of what was lost are duplicates here for ever")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		g.Close(ctx)
		if lost := seen.lost.Load(); lost != 100_000+5 {
			t.Errorf("%d reported lost in the end", lost)
		}
	})
}
