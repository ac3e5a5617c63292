package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// A finished event is what a store holds millions of. Redis doubles its tables
// at powers of two, which is up to 16 bytes more for each event right after; it
// is measured when they are full.
func TestFinishedEventCostsLittleMemory(t *testing.T) {
	const warm, events = 1000, 1<<15 - 2000
	for name, c := range map[string]struct {
		fingerprint string
		most        int
	}{
		"id of 40 characters":  {"", 165},
		"with the fingerprint": {dedupe.Fingerprint([32]byte{1}), 180},
	} {
		t.Run(name, func(t *testing.T) {
			server := harness.StartRedis(t)
			s := open(t, Options{Addresses: []string{server.Addr}, Timeout: patience})
			complete(t, s, warm, 0, c.fingerprint) // buffers of connections, first tables
			before := usedMemory(t, server)
			complete(t, s, events, warm, c.fingerprint)
			each := float64(usedMemory(t, server)-before) / events
			t.Logf("%.1f bytes", each)
			if each > float64(c.most) {
				t.Errorf("a finished event costs %.1f bytes, want at most %d", each, c.most)
			}
		})
	}
}

// complete finishes n events of 6 characters of source and 40 of id.
func complete(t *testing.T, s *Store, n, from int, fingerprint string) {
	t.Helper()
	const callers = 100
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := from + i; j < from+n; j += callers {
				key := dedupe.Key("orders", fmt.Sprintf("evt_%036d", j), fingerprint)
				d := dedupe.Done{Mark: uint16(j % (dedupe.MaxMark + 1)), TTL: time.Hour}
				if err := s.Complete(context.Background(), key, d); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func usedMemory(t *testing.T, s *harness.Redis) int {
	t.Helper()
	for line := range strings.Lines(s.Do("info", "memory").(string)) {
		if text, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no used_memory")
	return 0
}
