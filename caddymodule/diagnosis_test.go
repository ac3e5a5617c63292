package caddymodule

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestTheLogSaysWhatIsOddAboutARefusedDelivery(t *testing.T) {
	for want, spoil := range map[string]func(*http.Request){
		"no header Stripe-Signature": func(r *http.Request) { r.Header.Del("Stripe-Signature") },
		"It has X-Hub-Signature-256": func(r *http.Request) {
			r.Header.Del("Stripe-Signature")
			r.Header.Set("X-Hub-Signature-256", "sha256=00")
		},
		"in the unit unix_ms": func(r *http.Request) {
			r.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%064d", time.Now().UnixMilli(), 0))
		},
		"signed 2h": func(r *http.Request) {
			r.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%064d", time.Now().Add(-2*time.Hour-time.Second).Unix(), 0))
		},
		"compressed": func(r *http.Request) {
			r.Header.Set("Content-Encoding", "gzip")
			r.Header.Set("Stripe-Signature", "v1=00")
		},
	} {
		g := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
		r := signed(t, "stripe", "evt_1")
		spoil(r)
		if w := g.do(r); w.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %d", want, w.StatusCode)
		}
		if text := fmt.Sprint(g.logs.last(t, "delivery")["diagnosis"]); !strings.Contains(text, want) {
			t.Errorf("the log says %q, not %q", text, want)
		}
	}
}

func TestTheDiagnosisKnowsWhichBodyIsJudged(t *testing.T) {
	g := newGateway(t, strings.Replace(stripeRoute, "secret", "signed_body decoded\nsecret", 1), counting(new(atomic.Int64)))
	r := signed(t, "stripe", "evt_1")
	setBody(r, encoded(t, "gzip", `{"id":"evt_1"}`))
	r.Header.Set("Content-Encoding", "gzip")
	if w := g.do(r); w.StatusCode != http.StatusUnauthorized {
		t.Fatalf("got %d", w.StatusCode)
	}
	text := fmt.Sprint(g.logs.last(t, "delivery")["diagnosis"])
	if !strings.Contains(text, "signed_body wire") || strings.Contains(text, "not compressed") || strings.Contains(text, "Content-Length") {
		t.Errorf("the log says %q", text)
	}
}

func TestAFloodIsNotDiagnosed(t *testing.T) {
	g := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	for range 3 * diagnosesPerMinute {
		r := signed(t, "stripe", "evt_1")
		r.Header.Del("Stripe-Signature")
		g.do(r)
	}
	n := 0
	for _, line := range g.logs.lines(t, "delivery") {
		if line["diagnosis"] != nil {
			n++
		}
	}
	if n != diagnosesPerMinute { // the minute is that of the first one
		t.Errorf("%d lines have a diagnosis", n)
	}
}

func TestDiagnosesComeBackAfterAMinute(t *testing.T) {
	g := &diagnostician{config: verify.Config{Sender: "stripe"}}
	now := time.Unix(1767225600, 0)
	r := &verify.Request{Header: http.Header{}}
	for range diagnosesPerMinute {
		if len(g.diagnose(r, nil, now)) == 0 {
			t.Fatal("nothing is said")
		}
	}
	for _, c := range []struct {
		after time.Duration
		said  bool
	}{{0, false}, {time.Minute - 1, false}, {time.Minute, true}, {time.Minute, true}, {-time.Hour, true}} {
		if said := len(g.diagnose(r, nil, now.Add(c.after))) > 0; said != c.said {
			t.Errorf("after %v: said is %v", c.after, said)
		}
	}
}
