package caddymodule

import (
	"sync"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/explain"
)

// diagnosesPerMinute is how many of a route's refused deliveries are looked into
// in a minute: enough for an operator, and nothing for a flood to lean on.
const diagnosesPerMinute = 5

// diagnostician says in the log what is odd about deliveries that do not verify.
type diagnostician struct {
	config verify.Config // without secrets

	mu     sync.Mutex
	minute time.Time
	given  int
}

// diagnose returns what is odd at first sight, or nothing if it has said enough
// in this minute. A nil diagnostician never says anything.
// The wire is the body as it came, if that of r is what was in it.
func (g *diagnostician) diagnose(r *verify.Request, wire []byte, now time.Time) (texts []string) {
	if g == nil || !g.allowed(now) {
		return nil
	}
	for _, c := range explain.Clues(explain.Input{Config: g.config, Request: r, Wire: wire, Now: now}) {
		texts = append(texts, c.Text)
	}
	return texts
}

func (g *diagnostician) allowed(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.minute) >= time.Minute || now.Before(g.minute) {
		g.minute, g.given = now, 0
	}
	g.given++
	return g.given <= diagnosesPerMinute
}
