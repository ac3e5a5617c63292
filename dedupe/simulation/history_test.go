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

// live runs the history of a seed over a store in memory.
func live(t *testing.T, seed uint64, m mutant, recording bool) history {
	return liveOver(t, inMemory, seed, m, recording)
}

// opener opens an empty store that reads the time from now.
type opener func(now func() time.Time) (dedupe.Store, error)

func inMemory(now func() time.Time) (dedupe.Store, error) { return memstore.New(now), nil }

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
					t.Errorf("seed %d: %s\n\treplay: go test ./dedupe/simulation -run Keep -seed %d -v", seed, v, seed)
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
