package main

import "testing"

// TestEveryMutantApplies: one that does not would show nothing.
func TestEveryMutantApplies(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.apply(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
