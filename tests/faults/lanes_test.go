package faults

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fault is something that goes wrong, and is over when happen returns.
type fault struct {
	name   string
	happen func(rng *rand.Rand)
}

// lane are the faults of one part of the world, which happen one after the
// other. Lanes go on side by side.
type lane struct {
	share  int // of all faults
	faults []fault
	rng    *rand.Rand
	deck   []fault
	dealt  map[string]int
}

func (w *world) addLane(share int, faults []fault) {
	rng := w.random(partLanes + uint64(len(w.lanes)))
	w.lanes = append(w.lanes, &lane{share: share, faults: faults, rng: rng, dealt: make(map[string]int)})
}

// quotas is how many faults each lane has.
func (w *world) quotas() (quotas []int) {
	whole := 0
	for _, l := range w.lanes {
		whole += l.share
	}
	for _, l := range w.lanes {
		quotas = append(quotas, (w.faults*l.share+whole-1)/whole)
	}
	return quotas
}

// run has n faults happen, each at some time in its own n-th of the storms.
func (l *lane) run(w *world, n int) {
	slot := w.storms() / time.Duration(n)
	for i := range n {
		begins := slot*time.Duration(i) + time.Duration(l.rng.Int64N(int64(slot)))
		<-time.After(time.Until(w.start.Add(withCalms(begins))))
		f := l.deal()
		f.happen(l.rng)
		l.dealt[f.name]++
	}
}

// deal takes a fault from a shuffled deck, so that each kind has its turn.
func (l *lane) deal() fault {
	if len(l.deck) == 0 {
		l.deck = append(l.deck, l.faults...)
		l.rng.Shuffle(len(l.deck), func(i, j int) { l.deck[i], l.deck[j] = l.deck[j], l.deck[i] })
	}
	f := l.deck[0]
	l.deck = l.deck[1:]
	return f
}

// lasting is a fault that is begun, lasts a while and is ended.
func (w *world) lasting(c cause, gateway int, name string, least, most time.Duration, begin func(*rand.Rand), end func()) fault {
	return fault{name, func(rng *rand.Rand) {
		over := w.spans.begin(c, gateway, name)
		defer over()
		begin(rng)
		defer end()
		pause(rng, least, most)
	}}
}

// assertAllDealt fails a test in which a kind of fault had no turn.
func (w *world) assertAllDealt(t *testing.T) {
	t.Helper()
	for _, l := range w.lanes {
		for _, f := range l.faults {
			if l.dealt[f.name] == 0 {
				t.Errorf("there was no fault of the kind %q: were there enough of all?", f.name)
			}
		}
	}
}
