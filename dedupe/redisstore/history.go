package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// NoticeTime is how long a check reports what has happened once.
const NoticeTime = 10 * time.Minute

// fewKeys may all expire between two checks without anything being wrong.
const fewKeys = 10

// history is what earlier checks saw. The zero history is usable.
type history struct {
	mu     sync.Mutex
	begun  bool                // a check has ended
	nodes  map[string]sighting // by name
	events []event
}

// sighting is what a check saw of a node.
type sighting struct {
	run  string
	keys int64
}

// event is something that has happened between two checks.
type event struct {
	Finding
	at time.Time
}

// note compares what a check sees of a node with what the one before saw, and
// returns what has happened to the node in the last [NoticeTime].
func (h *history) note(node string, now sighting, at time.Time) []Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	happened := func(reason Reason, detail string) {
		h.events = append(h.events, event{Finding{reason, node, detail}, at})
	}
	before, known := h.nodes[node]
	if (known || h.begun) && before.run != now.run {
		happened(Restarted, "another server, or another run of it, answers than before: what was not persisted or replicated is gone")
	}
	if before.keys >= fewKeys && now.keys == 0 {
		happened(ServerEmpty, fmt.Sprintf("its %d keys are gone: copies of finished events will reach the upstream again", before.keys))
	}
	if h.nodes == nil {
		h.nodes = make(map[string]sighting)
	}
	h.nodes[node] = now
	h.events = slices.DeleteFunc(h.events, func(e event) bool { return at.Sub(e.at) >= NoticeTime })
	var found []Finding
	for _, e := range h.events {
		if e.Node == node {
			found = append(found, e.Finding)
		}
	}
	return found
}

// begin ends the first check: a node that is new after it has joined, or took
// the place of another.
func (h *history) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = len(h.nodes) > 0
}
