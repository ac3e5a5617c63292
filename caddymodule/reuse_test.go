package caddymodule

import (
	"strconv"
	"testing"
)

func TestReuseIsSeenOnceTheBodyDiffers(t *testing.T) {
	m := newReuseMemory()
	for i, c := range []struct {
		key  string
		body uint64
		want bool
	}{
		{"a", 1, false}, {"a", 1, false}, {"b", 2, false}, {"a", 2, true}, {"a", 2, false}, {"a", 1, true},
	} {
		if got := m.seen(c.key, c.body); got != c.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
}

// TestReuseMemoryKeepsTheYoungest: it never takes one id for another, and an id
// is forgotten only for a younger one.
func TestReuseMemoryKeepsTheYoungest(t *testing.T) {
	m := newReuseMemory()
	remembered := 0
	for i := range 5 * reusePlaces {
		if m.seen(strconv.Itoa(i), 1) {
			t.Fatalf("id %d is taken for another", i)
		}
		if !m.seen(strconv.Itoa(i), 2) {
			t.Fatalf("the youngest id, %d, is forgotten", i)
		}
		if i >= 100 && m.seen(strconv.Itoa(i-100), 3) {
			remembered++
		}
	}
	if remembered < 5*reusePlaces*9/10 {
		t.Errorf("a hundred ids later, %d of %d are remembered", remembered, 5*reusePlaces)
	}
	if n := testing.AllocsPerRun(100, func() { m.seen("a", 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
