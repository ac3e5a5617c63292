package caddymodule

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

const stableopsRoute = `route {
	webhook_dedupe stableops {
		source $SOURCE
		secret $SECRET
	}
	upstream
}`

func TestReplayedBytesUnderAnotherIDAreRefused(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stableopsRoute, counting(&calls))
	now := time.Now()
	expect(t, g.do(signedAt(t, "stableops", "evt_1", now)), 200, "first")

	replayed := signedAt(t, "stableops", "evt_1", now)
	replayed.Header.Set("X-Event-Id", "evt_2")
	resp := g.do(replayed)
	expect(t, resp, 503, "")
	if resp.Header.Get("Retry-After") == "" || calls.Load() != 1 {
		t.Errorf("Retry-After %q, %d calls", resp.Header.Get("Retry-After"), calls.Load())
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "replayed"); n != 1 {
		t.Errorf("%v counted as replayed", n)
	}
	// A retry under the same id passes, re-signed or not.
	expect(t, g.do(signedAt(t, "stableops", "evt_1", now)), 200, "duplicate")
	expect(t, g.do(signedAt(t, "stableops", "evt_1", now.Add(time.Second))), 200, "duplicate")
}

// TestReplayGuardLastsAsLongAsTheSignature: until its timestamp is out of the
// tolerance, which for a sender whose clock is fast is later than from now.
func TestReplayGuardLastsAsLongAsTheSignature(t *testing.T) {
	var passed atomic.Int64
	store := newFakeStore()
	store.Store = memstore.New(func() time.Time { return time.Unix(1_800_000_000, passed.Load()) })
	g := newGatewayOn(t, store, stableopsRoute, counting(new(atomic.Int64)))
	fast := time.Now().Add(4 * time.Minute)
	expect(t, g.do(signedAt(t, "stableops", "evt_1", fast)), 200, "first")
	passed.Store(int64(8 * time.Minute))
	replayed := signedAt(t, "stableops", "evt_1", fast)
	replayed.Header.Set("X-Event-Id", "evt_2")
	expect(t, g.do(replayed), 503, "")
}

func TestReplayGuardCanBeSwitchedOff(t *testing.T) {
	g := newGateway(t, strings.Replace(stableopsRoute, "source", "replay_guard off\nsource", 1), counting(new(atomic.Int64)))
	now := time.Now()
	g.do(signedAt(t, "stableops", "evt_1", now))
	replayed := signedAt(t, "stableops", "evt_1", now)
	replayed.Header.Set("X-Event-Id", "evt_2")
	expect(t, g.do(replayed), 200, "first")
}

func TestAnotherBodyUnderOneIDIsForwarded(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stableopsRoute, counting(&calls))
	expect(t, g.send("stableops", "evt_1", `{"a":1}`), 200, "first")
	expect(t, g.send("stableops", "evt_1", `{"a":2}`), 200, "first")
	expect(t, g.send("stableops", "evt_1", `{"a":1}`), 200, "duplicate")
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
	if n := count(t, "reused_ids_total", "source", g.source); n != 2 {
		t.Errorf("%v reused ids", n)
	}
	if line := g.logs.last(t, "one event id came with two different bodies: is it the id of the event?"); line["event_id"] != "evt_1" {
		t.Errorf("the warning says %v", line)
	}
}

func TestAnotherBodyUnderOneIDIsADuplicateIfTheRouteSaysSo(t *testing.T) {
	var calls atomic.Int64
	site := strings.Replace(stableopsRoute, "source", "on_reused_id duplicate\nsource", 1)
	g := newGateway(t, site, counting(&calls))
	expect(t, g.send("stableops", "evt_1", `{"a":1}`), 200, "first")
	expect(t, g.send("stableops", "evt_1", `{"a":1}`), 200, "duplicate")
	if n := count(t, "reused_ids_total", "source", g.source); n != 0 {
		t.Errorf("the same body is counted as reuse: %v", n)
	}
	expect(t, g.send("stableops", "evt_1", `{"a":2}`), 200, "duplicate")
	if n := count(t, "reused_ids_total", "source", g.source); n != 1 || calls.Load() != 1 {
		t.Errorf("%v reused ids, %d calls", n, calls.Load())
	}
}

func TestSignedIDCountsAndADifferentHeaderIsNoticed(t *testing.T) {
	g := newGateway(t, strings.Replace(stripeRoute, "stripe", "paymos", 1), counting(new(atomic.Int64)))
	r := signed(t, "paymos", "evt_1")
	r.Header.Set("X-Webhook-Id", "evt_other")
	expect(t, g.do(r), 200, "first")
	expect(t, g.send("paymos", "evt_1"), 200, "duplicate")
	if n := count(t, "id_mismatches_total", "source", g.source); n != 1 {
		t.Errorf("%v mismatches", n)
	}
	if line := g.logs.lines(t, "delivery")[0]; line["event_id"] != "evt_1" || line["header_id_differs"] != true {
		t.Errorf("the log says %v", line)
	}
}

func TestPreviousSecretPassesAndIsCounted(t *testing.T) {
	site := strings.Replace(stripeRoute, "secret $SECRET", "secret another-secret\nprevious_secret $SECRET", 1)
	g := newGateway(t, site, counting(new(atomic.Int64)))
	expect(t, g.send("stripe", "evt_1"), 200, "first")
	if n := count(t, "previous_secret_total", "source", g.source); n != 1 {
		t.Errorf("%v counted", n)
	}
	if line := g.logs.last(t, "delivery"); line["secret"] != 2.0 {
		t.Errorf("the log says %v", line)
	}
}

func TestSignedURLIsTheOneBeforeRewrites(t *testing.T) {
	site := `route {
		rewrite * /index.php
		webhook_dedupe {
			source $SOURCE
			secret $SECRET
			signature {
				header X-Sig
				payload {method}|{url}|{body}
			}
			event_id query id
			public_url https://example.com
		}
		upstream
	}`
	g := newGateway(t, site, counting(new(atomic.Int64)))
	r, _ := http.NewRequest(http.MethodPost, "http://gateway.test/hook?id=7", strings.NewReader("x"))
	r.RequestURI = "/hook?id=7"
	r.Header.Set("X-Sig", hmacHex("POST|https://example.com/hook?id=7|x"))
	expect(t, g.do(r), 200, "first")
}
