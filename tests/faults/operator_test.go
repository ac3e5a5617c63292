package faults

import (
	"slices"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// decision is an operator's, on an event in doubt that stayed back.
type decision struct {
	at time.Time // zero: there was none
	// done: he found the work done, and said so.
	done bool
	// again: he let it through once more, as a possible repeat.
	again bool
}

// decide has an operator look at every event that is held back, as the README
// says it: was the work done, or not? Then its sender comes again.
func (w *world) decide() {
	var held []*event
	for _, e := range w.events {
		if e.route.holds && e.held() {
			held = append(held, e)
		}
	}
	for _, e := range held {
		w.resolve(e, w.upstream.worked(e.id))
	}
	w.each(held, func(e *event) {
		for range operatorTries {
			if e.try(w, false) {
				return
			}
		}
	})
}

// worked reports whether the work of an event was done.
func (u *upstream) worked(event string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.ledger[event], func(q *request) bool { return !q.worked.IsZero() })
}

// resolveInRedis decides on one event, by the commands of the README.
func resolveInRedis(r *harness.Redis) func(*event, bool) {
	return func(e *event, worked bool) {
		key := "webhook_dedupe:" + e.route.name + ":" + e.id
		e.decided = decision{at: time.Now(), done: worked}
		if worked {
			r.Do("SET", key, "0", "XX", "KEEPTTL")
		} else {
			r.Do("DEL", key)
		}
	}
}

// resolveByReload lets everything through that is held back, whatever was done.
func resolveByReload(w *world) func(*event, bool) {
	return func(e *event, _ bool) {
		e.decided = decision{at: time.Now(), again: true}
		if w.released {
			return
		}
		w.released = true
		for _, g := range w.gateways {
			g.Reload(w.site(0))
		}
	}
}
