package caddymodule

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func completion(key string) dedupe.Completion {
	return dedupe.Completion{Key: key, Done: dedupe.Done{Mark: 7, TTL: time.Hour}, At: time.Unix(1_767_225_600, 0).UTC()}
}

func openTestSpool(t *testing.T, dir, identity string) *spool {
	t.Helper()
	s, err := openSpool(dir, identity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// keys loads a spool and returns the keys that it holds, each once.
func (s *spool) keys(t *testing.T) []string {
	t.Helper()
	all, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for _, c := range all {
		if c != completion(c.Key) {
			t.Errorf("loaded %+v, want %+v", c, completion(c.Key))
		}
		keys = append(keys, c.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func keep(t *testing.T, s *spool, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := s.Keep(completion(key)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSpoolOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	first := openTestSpool(t, dir, "redis a")
	keep(t, first, "a", "b")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := openTestSpool(t, dir, "redis a")
	if got := second.keys(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the next process loads %v", got)
	}
	keep(t, second, "b", "c")
	if got := second.keys(t); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("kept again and more: %v", got)
	}
	if err := second.Clear(); err != nil {
		t.Fatal(err)
	}
	if got := second.keys(t); len(got) != 0 {
		t.Errorf("after clearing: %v", got)
	}
	keep(t, second, "d")
	if got := second.keys(t); !slices.Equal(got, []string{"d"}) {
		t.Errorf("used again after clearing: %v", got)
	}
}

// TestSpoolSurvivesEveryTornWrite: whatever part of the last line is there, the
// lines before it and those that come after it count.
func TestSpoolSurvivesEveryTornWrite(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	s := openTestSpool(t, whole, "x")
	keep(t, s, "a", "torn")
	data, err := os.ReadFile(s.slots[0].path())
	if err != nil {
		t.Fatal(err)
	}
	begin := slices.Index(data[1:], '\n') + 2
	for cut := begin; cut < len(data)-1; cut++ {
		dir := t.TempDir()
		s := openTestSpool(t, dir, "x")
		if err := os.WriteFile(s.slots[0].path(), data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		keep(t, s, "b")
		if got := s.keys(t); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("cut at %d of %d: %v", cut, len(data), got)
		}
		s.Close()
	}
}

// TestProcessesDoNotShareASlot, and what a dead one left is adopted by one only.
func TestProcessesDoNotShareASlot(t *testing.T) {
	dir := t.TempDir()
	one, two := openTestSpool(t, dir, "x"), openTestSpool(t, dir, "x")
	keep(t, one, "a")
	keep(t, two, "b")
	if got := two.keys(t); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the second process sees %v", got)
	}
	if err := two.Clear(); err != nil {
		t.Fatal(err)
	}
	if got := one.keys(t); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the first process sees %v after the second cleared its own", got)
	}
	one.Close()
	keep(t, two, "c")
	two.Close()
	heir := openTestSpool(t, dir, "x")
	if got := heir.keys(t); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("the heir sees %v", got)
	}
	heir.Close()
	other := openTestSpool(t, dir, "other store")
	if got := other.keys(t); len(got) != 0 {
		t.Errorf("another store's spool holds %v", got)
	}
	other.Close()
	last := openTestSpool(t, dir, "x")
	if err := last.Clear(); err != nil {
		t.Fatal(err)
	}
	if got := last.keys(t); len(got) != 0 {
		t.Errorf("after clearing what two processes left, there is %v", got)
	}
}

func TestSpoolThatCannotBeOpenedSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openSpool(file, "x"); err == nil {
		t.Error("want an error")
	}
}
