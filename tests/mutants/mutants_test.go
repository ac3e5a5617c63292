package main

import (
	"strings"
	"testing"
)

func loaded(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = load(root); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// TestEveryMutantApplies: one that does not would show nothing.
func TestEveryMutantApplies(t *testing.T) {
	root, all := loaded(t)
	for _, m := range all {
		if _, err := m.apply(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestSimulationSeesABrokenPromise: with the real product, broken in the ways that
// matter most.
func TestSimulationSeesABrokenPromise(t *testing.T) {
	root, all := loaded(t)
	count := 0
	for _, m := range all {
		if !strings.HasPrefix(m.name, "promise: ") {
			continue
		}
		count++
		r, err := m.try(root)
		switch {
		case err != nil:
			t.Errorf("%s: %v", m.name, err)
		case !r.caught:
			t.Errorf("%s: not seen", m.name)
		}
	}
	if count != 5 {
		t.Errorf("%d mutants were tried", count)
	}
}

func TestListsSayWhatIsWrongWithThem(t *testing.T) {
	for name, text := range map[string]string{
		"no file":     "= a\n- b\n+ c\n",
		"nothing old": "= a\nfile f\n+ c\n",
		"a stray":     "= a\nfile f\nwhat is this\n",
	} {
		if all, err := parse([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v", name, all)
		}
	}
	for name, e := range map[string]edit{
		"not there": {file: "f", old: []string{"c"}},
		"twice":     {file: "f", old: []string{"b"}},
		"nothing":   {file: "f"},
	} {
		if text, err := e.apply([]byte("a b\n\tb\n")); err == nil {
			t.Errorf("%s: applied, as %q", name, text)
		}
	}
	across := edit{file: "f", old: []string{"b {", "c"}, new: []string{"d"}}
	if text, err := across.apply([]byte("a b {\n\t\tc()\n")); err != nil || string(text) != "a d()\n" {
		t.Errorf("over two lines: %q, %v", text, err)
	}
}
