package faults

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// line is what a gateway wrote about an event.
type line struct {
	gateway int
	at      time.Time
	entry   harness.Entry
}

// logbook is the gateways' ledger.
type logbook struct {
	deliveries map[string][]line // by try
	events     map[string][]line // everything that names an event, by event
	// waiting are the completions that a gateway could not write at once, by
	// event: from when, and until when.
	waiting map[string][]*waiting
	total   int
}

// waiting is the time in which a gateway knows of a finished event that the
// store has not been told of.
type waiting struct {
	gateway     int
	from, until time.Time // until is far in the future if it was never written
	written     bool
}

// ever is after all that can happen in a run.
var ever = time.Unix(math.MaxInt32, 0)

func (w *world) readLogs() *logbook {
	b := &logbook{deliveries: make(map[string][]line), events: make(map[string][]line), waiting: make(map[string][]*waiting)}
	for n, g := range w.gateways {
		for _, e := range g.Logs(func(e harness.Entry) bool { return e.Text("event_id") != "" || e.Text("event") != "" }) {
			b.add(line{n, timeOf(e), e})
		}
	}
	return b
}

// timeOf is when an entry was written: seconds, with a fraction.
func timeOf(e harness.Entry) time.Time {
	seconds, fraction := math.Modf(e.Number("ts"))
	return time.Unix(int64(seconds), int64(fraction*1e9))
}

func (b *logbook) add(l line) {
	id := l.entry.Text("event_id")
	if id == "" { // a line about a record, not about a delivery
		key := l.entry.Text("event")
		id, _, _ = strings.Cut(key[strings.LastIndexByte(key, ':')+1:], "~") // a body's fingerprint
	}
	b.events[id] = append(b.events[id], l)
	switch msg := l.entry.Text("msg"); {
	case msg == "delivery":
		b.total++
		b.deliveries[l.entry.Text("try")] = append(b.deliveries[l.entry.Text("try")], l)
	case l.entry.Text("kind") != "complete":
	case strings.HasPrefix(msg, "the store could not take an outcome"):
		if b.waitingAt(id, l.gateway) == nil {
			b.waiting[id] = append(b.waiting[id], &waiting{gateway: l.gateway, from: l.at, until: ever})
		}
	case strings.HasPrefix(msg, "the store took an outcome that waited"):
		if wt := b.waitingAt(id, l.gateway); wt != nil {
			wt.until, wt.written = l.at, true
		}
	}
}

// waitingAt is what a gateway still holds back, as far as the log has been read.
func (b *logbook) waitingAt(id string, gateway int) *waiting {
	for _, wt := range b.waiting[id] {
		if wt.gateway == gateway && !wt.written {
			return wt
		}
	}
	return nil
}

// String is the line as a history shows it.
func (l line) String() string {
	var words []string
	for _, field := range []string{"msg", "try", "result", "reason", "outcome", "kind", "error"} {
		if s := l.entry.Text(field); s != "" {
			words = append(words, field+"="+s)
		}
	}
	if n := l.entry.Number("status"); n != 0 {
		words = append(words, fmt.Sprintf("status=%v", n))
	}
	return strings.Join(words, ", ")
}
