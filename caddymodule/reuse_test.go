package caddymodule

import (
	"strconv"
	"testing"
)

func TestReuseIsSeenOnceTheBodyDiffers(t *testing.T) {
	m := newReuseMemory()
	for i, c := range []struct {
		key, fingerprint string
		want             bool
	}{
		{"a", "1", false}, {"a", "1", false}, {"b", "2", false}, {"a", "2", true}, {"a", "2", false}, {"a", "1", true},
	} {
		if got := m.seen(c.key, c.fingerprint); got != c.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
}

func TestReuseMemoryIsBounded(t *testing.T) {
	m := newReuseMemory()
	for i := range 5 * reuseGeneration {
		m.seen(strconv.Itoa(i), "1")
	}
	if n := len(m.young) + len(m.old); n > 2*reuseGeneration {
		t.Errorf("it holds %d ids", n)
	}
	if m.seen("0", "2") {
		t.Error("the oldest id is remembered")
	}
	if !m.seen(strconv.Itoa(5*reuseGeneration-1), "2") {
		t.Error("the youngest id is forgotten")
	}
	m.young = make(map[string]string) // a new generation
	if !m.seen(strconv.Itoa(5*reuseGeneration-2), "2") {
		t.Error("the older generation is not asked")
	}
}
