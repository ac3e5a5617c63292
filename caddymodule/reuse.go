package caddymodule

import "sync"

// reuseMemory notices, as far as it remembers, that an id came again with
// another body. It holds two generations of ids; the older one is dropped when
// the younger one is full.
type reuseMemory struct {
	mu         sync.Mutex
	young, old map[string]string
}

// reuseGeneration bounds the memory: about 100 bytes an id, two generations.
const reuseGeneration = 10_000

func newReuseMemory() *reuseMemory { return &reuseMemory{young: make(map[string]string)} }

// seen remembers the fingerprint that came with key and reports whether a
// different one came before.
func (m *reuseMemory) seen(key, fingerprint string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.young[key]
	if !ok {
		before, ok = m.old[key]
	}
	if ok && before == fingerprint {
		return false
	}
	if len(m.young) >= reuseGeneration {
		m.old, m.young = m.young, make(map[string]string)
	}
	m.young[key] = fingerprint
	return ok
}
