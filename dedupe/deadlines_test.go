package dedupe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestDeadlinesGiveEveryOperationItsTime: at least the time-out, at most a
// sixteenth more, whenever it begins.
func TestDeadlinesGiveEveryOperationItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dedupe.NewDeadlines(time.Second)
		defer d.Close()
		for range 500 {
			begun := time.Now()
			ctx := d.Next()
			if err := ctx.Err(); err != nil {
				t.Fatalf("an operation begins with %v", err)
			}
			deadline, ok := ctx.Deadline()
			if left := deadline.Sub(begun); !ok || left < time.Second || left > time.Second+time.Second/16 {
				t.Fatalf("an operation has %v", left)
			}
			time.Sleep(7 * time.Millisecond)
		}
		ctx := d.Next()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("an operation that takes too long ends with %v", ctx.Err())
		}
		if err := d.Next().Err(); err != nil {
			t.Errorf("the next one begins with %v", err)
		}
	})
}

func TestOperationsAtOneTimeShareADeadline(t *testing.T) {
	d := dedupe.NewDeadlines(time.Hour)
	defer d.Close()
	first := d.Next()
	if n := testing.AllocsPerRun(100, func() { _ = d.Next() }); n != 0 || d.Next() != first {
		t.Errorf("%v allocations for one more", n)
	}
}
