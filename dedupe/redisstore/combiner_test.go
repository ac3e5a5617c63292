package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// gate is an exec that holds every batch until the test lets it go.
type gate struct {
	started chan []redis.Cmder
	release chan struct{}
	elapsed *atomic.Int64 // the time, in nanoseconds
}

func newGate() (*combiner, gate) {
	g := gate{make(chan []redis.Cmder), make(chan struct{}), new(atomic.Int64)}
	c := newCombiner(func(_ context.Context, cmds []redis.Cmder) {
		g.started <- cmds
		<-g.release
	})
	c.now = func() time.Time { return time.Unix(0, g.elapsed.Load()) }
	return c, g
}

// ask sends commands as a caller does.
func ask(ctx context.Context, c *combiner, cmds ...redis.Cmder) error {
	return c.do(&waiter{ctx, cmds, make(chan struct{}, 1)})
}

func command(name string) redis.Cmder { return redis.NewCmd(context.Background(), name) }

// waitFor spins until the combiner's queue has n callers.
func waitFor(t *testing.T, c *combiner, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d callers queue", n), func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.queue) != n {
			return fmt.Errorf("%d do", len(c.queue))
		}
		return nil
	})
}

func idle(t *testing.T, c *combiner) {
	t.Helper()
	eventually(t, "the combiner rests", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.underWay != 0 || len(c.queue) != 0 {
			return fmt.Errorf("%d batches under way, %d callers queue", c.underWay, len(c.queue))
		}
		return nil
	})
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// occupy starts as many batches as may be under way: one for a first caller, and
// further ones that are worth it.
func occupy(t *testing.T, c *combiner, g gate, all *sync.WaitGroup) {
	t.Helper()
	start(t, c, g, all, 1)
	for range maxBatches - 1 {
		start(t, c, g, all, worthwhile)
	}
}

// waiting counts the callers in the queue.
func waiting(c *combiner) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// start starts a batch that this many callers share, those who wait among them.
func start(t *testing.T, c *combiner, g gate, all *sync.WaitGroup, callers int) {
	t.Helper()
	for range callers - waiting(c) {
		all.Go(func() {
			if err := ask(within(t), c, command("first")); err != nil {
				t.Error(err)
			}
		})
	}
	if n := len(<-g.started); n != callers {
		t.Errorf("a batch of %d callers, want %d", n, callers)
	}
}

func TestFurtherBatchBeginsWhenEnoughCallersWait(t *testing.T) {
	c, g := newGate()
	var all sync.WaitGroup
	start(t, c, g, &all, 1)
	for range worthwhile - 1 {
		all.Go(func() { _ = ask(within(t), c, command("a")) })
	}
	waitFor(t, c, worthwhile-1)
	all.Go(func() { _ = ask(within(t), c, command("a")) })
	if n := len(<-g.started); n != worthwhile {
		t.Errorf("the further batch is of %d callers, want all %d", n, worthwhile)
	}
	close(g.release)
	all.Wait()
	idle(t, c)
}

// TestSlowBatchHoldsUpNobodyWhoComes: whether the network is slow or a connection
// hangs, the next batch need not wait for it.
func TestSlowBatchHoldsUpNobodyWhoComes(t *testing.T) {
	c, g := newGate()
	var all sync.WaitGroup
	start(t, c, g, &all, 1)
	g.elapsed.Add(int64(young))
	all.Go(func() { _ = ask(within(t), c, command("early")) })
	waitFor(t, c, 1)
	g.elapsed.Add(1)
	start(t, c, g, &all, 2) // the early one goes along
	close(g.release)
	all.Wait()
	idle(t, c)
}

func TestCallersThatComeTogetherShareABatch(t *testing.T) {
	c, g := newGate()
	var all sync.WaitGroup
	occupy(t, c, g, &all)
	const callers = 50
	for range callers {
		all.Go(func() {
			if err := ask(within(t), c, command("a"), command("b")); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, c, callers)
	g.release <- struct{}{}
	cmds := <-g.started
	if len(cmds) != 2*callers {
		t.Errorf("the batch has %d commands, want those of all %d callers", len(cmds), callers)
	}
	for i, cmd := range cmds {
		if want := string("ab"[i%2]); cmd.Name() != want {
			t.Fatalf("command %d is %s: the callers' commands are mixed", i, cmd.Name())
		}
	}
	close(g.release)
	all.Wait()
	idle(t, c)
}

func TestBatchesAreBoundedInSizeAndNumber(t *testing.T) {
	var now, most, biggest, total atomic.Int64
	c := newCombiner(func(_ context.Context, cmds []redis.Cmder) {
		raise(&most, now.Add(1))
		raise(&biggest, int64(len(cmds)))
		total.Add(int64(len(cmds)))
		now.Add(-1)
	})
	var all sync.WaitGroup
	const callers, rounds = 400, 20
	for range callers {
		all.Go(func() {
			for range rounds {
				if err := ask(within(t), c, command("a")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	idle(t, c)
	if most.Load() > maxBatches || biggest.Load() > maxBatch || total.Load() != callers*rounds {
		t.Errorf("%d batches at once, the biggest of %d, %d commands in all", most.Load(), biggest.Load(), total.Load())
	}
}

func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); n > old && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

func TestFullBatchLeavesTheRestForTheNext(t *testing.T) {
	c, g := newGate()
	var all sync.WaitGroup
	occupy(t, c, g, &all)
	for range maxBatch + 10 {
		all.Go(func() { _ = ask(within(t), c, command("a")) })
	}
	waitFor(t, c, maxBatch+10)
	g.release <- struct{}{}
	if n := len(<-g.started); n != maxBatch {
		t.Errorf("the first batch has %d callers, want %d", n, maxBatch)
	}
	g.release <- struct{}{}
	if n := len(<-g.started); n != 10 {
		t.Errorf("the second batch has %d callers, want 10", n)
	}
	close(g.release)
	all.Wait()
	idle(t, c)
}

func TestCallerThatGaveUpIsNeverSentAndHoldsUpNobody(t *testing.T) {
	c, g := newGate()
	var all sync.WaitGroup
	occupy(t, c, g, &all)
	ctx, cancel := context.WithCancel(within(t))
	gone := make(chan error)
	go func() { gone <- ask(ctx, c, command("gone")) }()
	waitFor(t, c, 1)
	all.Go(func() {
		if err := ask(within(t), c, command("stays")); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, c, 2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gave up got %v", err)
	}
	g.release <- struct{}{}
	if cmds := <-g.started; len(cmds) != 1 || cmds[0].Name() != "stays" {
		t.Errorf("the next batch is %v", cmds)
	}
	close(g.release)
	all.Wait()
	idle(t, c)
}

func TestQueueOfCallersWhoAllGaveUpEndsTheTurn(t *testing.T) {
	c, g := newGate()
	var all, queued sync.WaitGroup
	occupy(t, c, g, &all)
	ctx, cancel := context.WithCancel(within(t))
	for range 3 {
		queued.Go(func() { _ = ask(ctx, c, command("gone")) })
	}
	waitFor(t, c, 3)
	cancel()
	queued.Wait()
	for range maxBatches {
		g.release <- struct{}{}
	}
	all.Wait()
	idle(t, c)
	all.Go(func() { _ = ask(within(t), c, command("later")) })
	if cmds := <-g.started; cmds[0].Name() != "later" {
		t.Errorf("afterwards, %v was sent", cmds)
	}
	close(g.release)
	all.Wait()
}

func TestCallerLeavesAtItsDeadlineAndTheBatchStaysForTheOthers(t *testing.T) {
	deadlines := make(chan time.Time, 1)
	c, g := newGate()
	inner := c.exec
	c.exec = func(ctx context.Context, cmds []redis.Cmder) {
		if len(cmds) == 2 {
			d, _ := ctx.Deadline()
			deadlines <- d
		}
		inner(ctx, cmds)
	}
	var all sync.WaitGroup
	occupy(t, c, g, &all)
	hasty, leave := context.WithTimeout(context.Background(), patience/2)
	gone := make(chan error)
	go func() { gone <- ask(hasty, c, command("hasty")) }()
	waitFor(t, c, 1)
	patient := within(t)
	all.Go(func() {
		if err := ask(patient, c, command("patient")); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, c, 2)
	g.release <- struct{}{}
	<-g.started
	leave() // while its batch is under way
	if err := <-gone; err == nil {
		t.Error("a caller past its deadline was told that it has an answer")
	}
	want, _ := patient.Deadline()
	if got := <-deadlines; got.Before(want) {
		t.Errorf("the batch ends at %v, before the most patient caller's %v", got, want)
	}
	close(g.release)
	all.Wait()
	idle(t, c)
}

// TestGoroutinesStayForTheNextQueue and end with the combiner, however many
// queues there have been.
func TestGoroutinesStayForTheNextQueue(t *testing.T) {
	c, g := newGate()
	resting := func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.underWay > 0 || c.resting < 1 || c.resting > maxBatches {
			return fmt.Errorf("%d batches under way, %d goroutines rest, want 1 to %d", c.underWay, c.resting, maxBatches)
		}
		return nil
	}
	for range 5 {
		var all sync.WaitGroup
		occupy(t, c, g, &all)
		for range 2 {
			all.Go(func() { _ = ask(within(t), c, command("a")) })
		}
		waitFor(t, c, 2)
		g.release <- struct{}{} // its caller hands the queue over
		<-g.started
		g.release <- struct{}{}
		g.release <- struct{}{}
		all.Wait()
		eventually(t, "the goroutines rest", resting)
	}
	var all sync.WaitGroup
	occupy(t, c, g, &all)
	all.Go(func() { _ = ask(within(t), c, command("a")) })
	waitFor(t, c, 1)
	c.close()
	c.close()
	close(g.release)
	<-g.started
	all.Wait() // what is under way ends as ever
	idle(t, c)
}
