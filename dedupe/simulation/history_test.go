package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run only the history of this seed, and tell it")
	historiesFlag = flag.Uint64("histories", 3000, "how many histories to run")
)

// history is what is left of a world when it is over.
type history struct {
	violations []string
	story      string
	steps      int
	world      *world
}

// live runs the history of a seed.
func live(t *testing.T, seed uint64, m mutant, recording bool) (h history) {
	synctest.Test(t, func(*testing.T) {
		w := &world{
			rng: rand.New(rand.NewPCG(seed, 1)), mutant: m, recording: recording,
			events: make(map[string]*event), claims: make(map[string]*lease),
		}
		w.plan = newPlan(w.rng)
		if m.policy != nil {
			m.policy(&w.plan.policy)
		}
		w.note("seed %d: %d gateways, %+v", seed, w.plan.gateways, w.plan)
		var store dedupe.Store = memstore.New(w.storeTime)
		if m.store != nil {
			store = m.store(store)
		}
		w.store = store
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

// TestHistoriesKeepThePromise is the proof: no history breaks an invariant.
func TestHistoriesKeepThePromise(t *testing.T) {
	if *seedFlag != 0 {
		h := live(t, *seedFlag, mutant{}, true)
		t.Log("\n" + h.story)
		for _, v := range h.violations {
			t.Error(v)
		}
		return
	}
	var next, steps atomic.Uint64
	for worker := range 4 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1); seed <= *historiesFlag && !t.Failed(); seed = next.Add(1) {
				h := live(t, seed, mutant{}, false)
				steps.Add(uint64(h.steps))
				for _, v := range h.violations {
					t.Errorf("seed %d: %s\n\treplay: go test ./dedupe/simulation -run Histories -seed %d -v", seed, v, seed)
				}
			}
		})
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
