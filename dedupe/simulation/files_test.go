package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
)

// TestHistoriesKeepThePromiseOnFiles: the same over the file store, fewer for
// what its disk costs.
func TestHistoriesKeepThePromiseOnFiles(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 100; seed++ {
		open := func(now func() time.Time) (dedupe.Store, error) {
			return filestore.Open(t.TempDir(), filestore.Options{Now: now})
		}
		for _, v := range liveOver(t, open, seed, mutant{}, false).violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}

// TestFilesFollowTheModel: every sequence of three steps.
func TestFilesFollowTheModel(t *testing.T) {
	now := epoch
	store, err := filestore.Open(t.TempDir(), filestore.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	count := 0
	err = search(nil, 3, func() *machine {
		count++
		return &machine{
			store: store, key: dedupe.Key("model", fmt.Sprint(count), ""),
			wait: func(d time.Duration) { now = now.Add(d) }, claimants: make(map[string]claimant),
		}
	})
	if err != nil {
		t.Error(err)
	}
}
