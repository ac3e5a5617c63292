package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
)

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
			wait: func(d time.Duration) { now = now.Add(d) },
		}
	})
	if err != nil {
		t.Error(err)
	}
}
