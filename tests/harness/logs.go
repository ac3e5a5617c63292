package harness

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// Entry is a line of the gateway's log.
type Entry map[string]any

// Text returns a field's text; empty if it is not there.
func (e Entry) Text(field string) string {
	s, _ := e[field].(string)
	return s
}

// Number returns a field's number; 0 if it is not there.
func (e Entry) Number(field string) float64 {
	n, _ := e[field].(float64)
	return n
}

// handlerLogger is the name that Caddy gives to the handler's log lines.
const handlerLogger = "http.handlers.webhook_dedupe"

// Output is all that the gateway's processes have printed.
func (g *Gateway) Output() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(g.past[:len(g.past):len(g.past)], g.process.output()...)
}

// Logs are the log lines that match.
func (g *Gateway) Logs(match func(Entry) bool) (entries []Entry) {
	for _, line := range g.Output() {
		var e Entry
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil && match(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// OwnLines are the raw log lines that this module wrote, and nobody else.
func (g *Gateway) OwnLines() (lines []string) {
	for _, line := range g.Output() {
		var e Entry
		if json.Unmarshal([]byte(line), &e) == nil && strings.Contains(e.Text("logger"), "webhook_dedupe") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Deliveries are the delivery lines of an event, in order.
func (g *Gateway) Deliveries(event string) []Entry {
	return g.Logs(func(e Entry) bool {
		return e.Text("logger") == handlerLogger && e.Text("msg") == "delivery" && e.Text("event_id") == event
	})
}

// AwaitDelivery waits for the n-th delivery line of an event, from 1.
func (g *Gateway) AwaitDelivery(t testing.TB, event string, n int) Entry {
	t.Helper()
	var found []Entry
	Eventually(t, "delivery "+strconv.Itoa(n)+" of "+event+" is in the log", func() bool {
		found = g.Deliveries(event)
		return len(found) >= n
	})
	return found[n-1]
}

// AwaitLog waits for a line with this message, and with this text somewhere in
// it.
func (g *Gateway) AwaitLog(t testing.TB, message, text string) Entry {
	t.Helper()
	var found []Entry
	Eventually(t, "the log says "+strconv.Quote(message)+" with "+strconv.Quote(text), func() bool {
		found = g.Logs(func(e Entry) bool {
			raw, _ := json.Marshal(e)
			return strings.Contains(e.Text("msg"), message) && strings.Contains(string(raw), text)
		})
		return len(found) > 0
	})
	return found[0]
}

// Metric adds up all values of a metric whose labels include these, each given
// as name="value".
func (g *Gateway) Metric(name string, labels ...string) (sum float64) {
	g.t.Helper()
	for line := range strings.Lines(g.Admin("/metrics")) {
		rest, ok := strings.CutPrefix(line, "caddy_webhook_dedupe_"+name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' || !containsAll(rest, labels) {
			continue
		}
		fields := strings.Fields(rest)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			g.t.Fatalf("metrics line %q: %v", line, err)
		}
		sum += value
	}
	return sum
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
