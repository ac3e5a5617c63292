package caddymodule

import (
	"hash/maphash"
	"sync"
)

// reuseMemory notices, as far as it remembers, that an id came again with
// another body. It has a fixed number of places: an id takes the place of an
// older one. It holds nothing that the garbage collector would have to follow.
type reuseMemory struct {
	seed maphash.Seed

	mu     sync.Mutex
	places [reusePlaces]reusePlace
}

type reusePlace struct {
	id   uint64 // the hash of a key
	body uint64 // the fingerprint that came with it
}

// reusePlaces are enough that at two new events a second four of five ids of the last
// 16 hours, the longest that most senders try again, still have theirs. They take
// 4 MiB, of which those pages count that ids have come to; and Go's collector, which
// runs when the heap has doubled, runs less often beside so much that it need not
// look at.
const reusePlaces = 1 << 18

func newReuseMemory() *reuseMemory { return &reuseMemory{seed: maphash.MakeSeed()} }

// seen remembers the body that came with key and reports whether a different one
// came before.
func (m *reuseMemory) seen(key string, body uint64) bool {
	id := maphash.String(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	before := &m.places[id%reusePlaces]
	reused := before.id == id && before.body != body
	*before = reusePlace{id, body}
	return reused
}
