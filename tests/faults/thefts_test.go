package faults

import (
	"bytes"
	"fmt"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// steal is somebody who saw a genuine delivery and sends its bytes again, as if
// they were another event's. The gateways had bound them to theirs.
func (e *event) steal(w *world, seen *try, d *harness.Delivery) {
	e.mu.Lock()
	tr := &try{id: fmt.Sprintf("%s stolen", seen.id), gateway: seen.dice.IntN(len(w.gateways)), dice: seen.dice, start: time.Now()}
	e.thefts = append(e.thefts, tr)
	e.mu.Unlock()
	loot := d.With("X-Event-Id", e.stolenID()).With(harness.EventHeader, e.stolenID()).With(tryHeader, tr.id)
	e.fill(w, tr, loot, bytes.NewReader(loot.Body))
}

// stolenID is the id that thieves give an event.
func (e *event) stolenID() string { return e.id + "_stolen" }

// checkThefts: what is signed for one event never passes as another, unless the
// store has forgotten to what it was bound.
func (j *judgement) checkThefts(e *event) {
	if len(e.thefts) == 0 {
		return
	}
	for _, tr := range e.thefts {
		j.counts.thefts++
		if tr.acknowledged() && !j.w.spans.lost(e.tries[0].start, tr.end) {
			j.violate(e, "thefts: %s got %d %s", tr.id, tr.status, tr.word)
		}
	}
	j.w.upstream.mu.Lock()
	defer j.w.upstream.mu.Unlock()
	for _, q := range j.w.upstream.ledger[e.stolenID()] {
		if !j.w.spans.lost(e.tries[0].start, q.start) {
			j.violate(e, "thefts: %s reaches the upstream as %q", q.try, q.word)
		}
	}
}
