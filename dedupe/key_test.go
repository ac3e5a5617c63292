package dedupe_test

import (
	"crypto/sha256"
	"math"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestKeyKeepsPlainIDsReadable and hashes what is long or odd.
func TestKeyKeepsPlainIDsReadable(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, k := range []struct{ id, fingerprint, want string }{
		{"evt_1", "", "orders:evt_1"},
		{"evt:a.B-c_9", "", "orders:evt:a.B-c_9"},
		{long[:64], "", "orders:" + long[:64]},
		{"evt_1", "AbCdEfGhIjK", "orders:evt_1~AbCdEfGhIjK"},
	} {
		if got := dedupe.Key("orders", k.id, k.fingerprint); got != k.want {
			t.Errorf("%q: got %q, want %q", k.id, got, k.want)
		}
	}
	for _, id := range []string{"", long, "evt 1", "{evt}", "evt\n", "ä", "#evt", "a~b", "\x00"} {
		got := dedupe.Key("orders", id, "")
		if !strings.HasPrefix(got, "orders:#") || len(got) != len("orders:#")+32 {
			t.Errorf("%q: got %q, want it hashed", id, got)
		}
	}
}

// FuzzKey: two events never share a key, whatever their ids, and no key holds
// what means something to a store, a shell or a log.
func FuzzKey(f *testing.F) {
	f.Add("orders", "evt_1", "", "orders", "evt_2", "")
	f.Add("orders", "evt_1", "body", "orders", "evt_1", "other body")
	f.Add("orders", "a", "body", "orders", "a:"+dedupe.Fingerprint(sha256.Sum256([]byte("body"))), "")
	f.Add("orders", "a", "body", "orders", "a~"+dedupe.Fingerprint(sha256.Sum256([]byte("body"))), "")
	f.Add("orders", "a:b", "", "orders:a", "b", "")
	f.Add("orders", "Evt", "", "orders", "evt", "")
	f.Add("orders", "", "", "orders", "#", "")
	f.Add("orders", strings.Repeat("x", 65), "", "orders", strings.TrimPrefix(dedupe.Key("orders", strings.Repeat("x", 65), ""), "orders:"), "")
	f.Fuzz(func(t *testing.T, source1, id1, body1, source2, id2, body2 string) {
		key := func(source, id, body string) string {
			if dedupe.CheckSource(source) != nil {
				t.Skip()
			}
			fingerprint := ""
			if body != "" {
				fingerprint = dedupe.Fingerprint(sha256.Sum256([]byte(body)))
			}
			return dedupe.Key(source, id, fingerprint)
		}
		a, b := key(source1, id1, body1), key(source2, id2, body2)
		if same := source1 == source2 && id1 == id2 && body1 == body2; (a == b) != same {
			t.Errorf("%q and %q", a, b)
		}
		for _, c := range []byte(a) {
			if c <= ' ' || c >= 0x7f || strings.IndexByte(`{}*?[]\"'`, c) >= 0 {
				t.Errorf("%q holds %q", a, c)
			}
		}
		if len(a) > 64+1+64+1+11 {
			t.Errorf("%q has %d bytes", a, len(a))
		}
	})
}

func TestCheckSource(t *testing.T) {
	for _, good := range []string{"orders", "shop-orders.v2_EU", strings.Repeat("x", 64)} {
		if err := dedupe.CheckSource(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", 65), "a:b", "a b", "{a}", "a\n", "ä", "a/b", "a~b", "#a", "\x00"} {
		if dedupe.CheckSource(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestMarkFitsIntoARecord, and tells checksums apart.
func TestMarkFitsIntoARecord(t *testing.T) {
	for _, checksum := range []uint32{0, dedupe.MaxMark, dedupe.MaxMark + 1, 1 << 31, math.MaxUint32} {
		if m := dedupe.MarkOf(checksum); m > dedupe.MaxMark {
			t.Errorf("the mark of %d is %d", checksum, m)
		}
		if dedupe.MarkOf(checksum) == dedupe.MarkOf(checksum-1) {
			t.Errorf("%d and the number before it have one mark", checksum)
		}
	}
}

// TestBindingsAreOfOneLength, whatever was signed.
func TestBindingsAreOfOneLength(t *testing.T) {
	for _, id := range []string{"", "evt_1", strings.Repeat("x", 10_000)} {
		if got := dedupe.BindingValue(id); len(got) != 16 {
			t.Errorf("%.10q: %q", id, got)
		}
	}
	if dedupe.BindingValue("a") == dedupe.BindingValue("b") {
		t.Error("two ids share a value")
	}
	if a, b := dedupe.BindingKey("orders", [32]byte{1}), dedupe.BindingKey("orders", [32]byte{2}); a == b || len(a) != len(b) {
		t.Errorf("%q and %q", a, b)
	}
}
