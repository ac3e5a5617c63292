package caddymodule

import (
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// FuzzSpool: whatever stands in the file, what was kept whole behind it is found
// again, and nothing without a key is made up.
func FuzzSpool(f *testing.F) {
	f.Add([]byte(""), "shop:evt_1", uint16(7))
	f.Add([]byte(`{"key":"shop:evt_0","mark":1,"ttl_ns":1,"at":"2026-01-01T00:00:00Z"}`+"\n"), "a", uint16(0))
	f.Add([]byte(`{"key":"shop:evt_0","mark":70000}`), "b", uint16(8191))
	f.Add([]byte("{\"key\":\"cut"), "\x00\xff", uint16(1))
	f.Fuzz(func(t *testing.T, before []byte, key string, mark uint16) {
		for _, c := range parseSpool(before) {
			if c.Key == "" {
				t.Error("a completion without a key")
			}
		}
		kept := dedupe.Completion{Key: dedupe.Key("shop", key, ""), Done: dedupe.Done{Mark: mark, TTL: time.Hour}, At: time.Unix(1767225600, 0).UTC()}
		s := &spool{slots: []slot{{dir: t.TempDir()}}}
		if err := s.Keep(kept); err != nil {
			t.Fatal(err)
		}
		s.file.Close()
		own, err := s.slots[0].load()
		if err != nil || len(own) != 1 || own[0] != kept {
			t.Fatalf("kept %v, found %v, %v", kept, own, err)
		}
	})
}
