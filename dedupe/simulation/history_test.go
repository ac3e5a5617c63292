package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run only the history of this seed, and tell it")
	historiesFlag = flag.Uint64("histories", 3000, "how many histories to run in memory; a thirtieth on files, a tenth on Redis")
)

// history is what is left of a world when it is over.
type history struct {
	violations []string
	story      string
	steps      int
	world      *world
}

// live runs the history of a seed over a store in memory.
func live(t *testing.T, seed uint64, m mutant, recording bool) history {
	return liveOver(t, inMemory, seed, m, recording)
}

// opener opens an empty store that reads the time from now.
type opener func(now func() time.Time) (dedupe.Store, error)

func inMemory(now func() time.Time) (dedupe.Store, error) {
	return &memory{memstore.New(now), now}, nil
}

// memory is a store in memory that can lose what it knows.
type memory struct {
	dedupe.Store
	now func() time.Time
}

func (m *memory) forget() error {
	m.Store = memstore.New(m.now)
	return nil
}

func liveOver(t *testing.T, open opener, seed uint64, m mutant, recording bool) (h history) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			rng: rand.New(rand.NewPCG(seed, 1)), mutant: m, recording: recording,
			events: make(map[string]*event), claims: make(map[string]*lease),
		}
		w.plan = newPlan(w.rng)
		if m.policy != nil {
			m.policy(&w.plan.policy)
		}
		w.note("seed %d: %d gateways, %+v", seed, w.plan.gateways, w.plan)
		store, err := open(w.storeTime)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		w.store = &compared{Store: store, w: w, ideal: make(map[string]noted)}
		if m.store != nil {
			w.store = m.store(w.store)
		}
		for range w.plan.gateways {
			w.slots = append(w.slots, w.newGateway())
		}
		w.senders()
		w.mischief()
		w.run()
		w.end()
		w.checkEnd()
		h = history{w.violations, w.story.String(), w.steps, w}
	})
	return h
}

// storeTime is the store's own clock.
func (w *world) storeTime() time.Time {
	t := epoch.Add(w.time())
	if w.mutant.gatewayClock && w.serving != nil {
		t = t.Add(w.serving.skew)
	}
	return t
}

// TestHistoriesKeepThePromise is the proof: no history breaks an invariant, and
// the store does nothing in any of them but what the model says.
func TestHistoriesKeepThePromise(t *testing.T) {
	t.Parallel()
	prove(t, *historiesFlag, 4, func(*testing.T, int) opener { return inMemory })
}

// TestHistoriesKeepThePromiseOnFiles: the same over the file store, fewer for
// what its disk costs.
func TestHistoriesKeepThePromiseOnFiles(t *testing.T) {
	t.Parallel()
	prove(t, *historiesFlag/30, 2, func(t *testing.T, _ int) opener {
		return func(now func() time.Time) (dedupe.Store, error) {
			return filestore.Open(t.TempDir(), filestore.Options{Now: now})
		}
	})
}

// TestHistoriesKeepThePromiseOnRedis: the same over a real Redis, whose scripts
// and keys decide, fewer for what the way there costs.
func TestHistoriesKeepThePromiseOnRedis(t *testing.T) {
	t.Parallel()
	socket := startRedis(t)
	prove(t, *historiesFlag/10, 4, func(t *testing.T, n int) opener {
		return onRedis(openDatabase(t, socket, n), outside(t))
	})
}

// TestForgetfulStoreLosesNoEvent: whatever a store loses may cost a repeat, but no
// event is acknowledged that was not accepted, and each is accepted in the end.
func TestForgetfulStoreLosesNoEvent(t *testing.T) {
	t.Parallel()
	lost := mutant{policy: redeliver, forgets: true}
	repeats := 0
	for seed := uint64(1); seed <= *historiesFlag/10; seed++ {
		h := live(t, seed, lost, false)
		for _, v := range h.violations {
			t.Errorf("seed %d: %s", seed, v)
		}
		for _, e := range h.world.events {
			for _, d := range e.deliveries {
				if e.acceptedAt >= 0 && d.start > e.acceptedAt {
					repeats++
				}
			}
		}
	}
	if repeats == 0 {
		t.Error("nothing was repeated: the store forgot nothing that mattered")
	}
}

// TestForgetfulRedisLosesNoEvent: the same over a real one, which is emptied.
func TestForgetfulRedisLosesNoEvent(t *testing.T) {
	t.Parallel()
	open := onRedis(openDatabase(t, startRedis(t), 0), outside(t))
	for seed := uint64(1); seed <= *historiesFlag/100; seed++ {
		for _, v := range liveOver(t, open, seed, mutant{policy: redeliver, forgets: true}, false).violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}

// prove runs the histories of the seeds from 1 to count, several at a time, each
// with what open opens for its worker.
func prove(t *testing.T, count uint64, workers int, open func(t *testing.T, worker int) opener) {
	if *seedFlag != 0 {
		h := liveOver(t, open(t, 0), *seedFlag, mutant{}, true)
		t.Log("\n" + h.story)
		for _, v := range h.violations {
			t.Error(v)
		}
		return
	}
	name := t.Name()
	var next atomic.Uint64
	for worker := range workers {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			open := open(t, worker)
			for seed := next.Add(1); seed <= count && !t.Failed(); seed = next.Add(1) {
				for _, v := range liveOver(t, open, seed, mutant{}, false).violations {
					t.Errorf("seed %d: %s\n\treplay: go test ./dedupe/simulation -run '%s$' -seed %d -v", seed, v, name, seed)
				}
			}
		})
	}
}

// TestHistoriesHoldEveryFault: what never happens would prove nothing.
func TestHistoriesHoldEveryFault(t *testing.T) {
	missing := []string{
		": first attempt", ": retry attempt", ": possible-repeat attempt", ": duplicate attempt", ": in-flight attempt", ": held attempt",
		" is accepted", " is refused", " is not-sent", " is in-doubt", "dies", "in the place of", "freezes", "thaws", "time-out",
		"claim sim:evt_0 #1 is unanswered", "renew sim:evt_0 #1 is unanswered", "complete sim:evt_0 #0 is unanswered",
		"release sim:evt_0 #1 is unanswered", "doubt sim:evt_0 #1 is unanswered", "lookup sim:evt_0 #0 is unanswered",
		"error the store does not answer", "two at a time", "claim lost", "written complete", "written release", "written doubt",
		"accepted, late", "refused, late", "(attempt 11)",
	}
	for seed := uint64(1); seed <= 1000 && len(missing) > 0; seed++ {
		story := live(t, seed, mutant{}, true).story
		missing = slices.DeleteFunc(missing, func(what string) bool { return strings.Contains(story, what) })
	}
	if len(missing) > 0 {
		t.Errorf("in no history: %q", missing)
	}
}

// TestASeedDeterminesItsHistory: a failing seed can be replayed.
func TestASeedDeterminesItsHistory(t *testing.T) {
	for seed := uint64(1); seed <= 150; seed++ {
		a, b := live(t, seed, mutant{}, true), live(t, seed, mutant{}, true)
		if a.story != b.story {
			t.Fatalf("seed %d has two histories:\n%s\n----\n%s", seed, a.story, b.story)
		}
	}
}
