package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

const mailgunRoute = `route {
	webhook_dedupe mailgun {
		source $SOURCE
		secret $SECRET
	}
	upstream
}`

// mailgunBody is the body of an event, signed anew.
func mailgunBody(t *testing.T, id string) string {
	t.Helper()
	v, err := verify.New(verify.Config{Sender: "mailgun", Secrets: []verify.Secret{{Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := v.SignBody(verify.SignInput{Body: []byte(`{"event-data":{"id":"` + id + `","event":"delivered"},"signature":{}}`), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func mailed(body string) *http.Request {
	return httptest.NewRequest(http.MethodPost, "http://gateway.test/mailgun", strings.NewReader(body))
}

// TestSignatureThatLeavesOutTheBodyIsBoundToTheFirst: whoever sees a delivery of
// Mailgun has a signature that fits every body.
func TestSignatureThatLeavesOutTheBodyIsBoundToTheFirst(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, mailgunRoute, counting(&calls))
	body := mailgunBody(t, "e1")
	expect(t, g.do(mailed(body)), 200, "first")
	for name, evil := range map[string]string{
		"another id":          strings.Replace(body, `"e1"`, `"e2"`, 1),
		"another body":        strings.Replace(body, "delivered", "complained", 1),
		"a byte more":         body + " ",
		"the signature moved": strings.Replace(body, `{"event-data"`, `{ "event-data"`, 1),
	} {
		expect(t, g.do(mailed(evil)), 503, "")
		if calls.Load() != 1 {
			t.Fatalf("%s reached the upstream", name)
		}
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "replayed"); n != 4 {
		t.Errorf("%v counted as replayed", n)
	}
	expect(t, g.do(mailed(body)), 200, "duplicate")
	expect(t, g.do(mailed(mailgunBody(t, "e2"))), 200, "first")
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestLoadWarnsThatTheBodyIsNotSigned(t *testing.T) {
	for directive, want := range map[string]bool{
		"webhook_dedupe mailgun {\nsecret a\n}":                                                          true,
		"webhook_dedupe telegram {\nsecret a\n}":                                                         true,
		"webhook_dedupe gitlab {\nsecret a\n}":                                                           true,
		"webhook_dedupe gitlab {\nsecret whsec_c2VjcmV0LW9mLXRoZS10ZXN0cy0x\n}":                          false,
		"webhook_dedupe {\nsecret a\nsignature {\nheader X\nalgorithm token\n}\nevent_id header X-Id\n}": true,
		"webhook_dedupe stripe {\nsecret a\n}":                                                           false,
	} {
		logs := newLogBook()
		if _, err := provision(t, routes("", directive), logs); err != nil {
			t.Fatalf("%s: %v", directive, err)
		}
		if got := strings.Contains(logs.String(), "does not cover the whole body"); got != want {
			t.Errorf("%s: warned %v", directive, got)
		}
	}
}

// TestFormInAnotherOrderIsACopy: Twilio signs the sorted parameters.
func TestFormInAnotherOrderIsACopy(t *testing.T) {
	const public = "https://hooks.example.test/sms"
	g := newGateway(t, `route {
		webhook_dedupe twilio {
			source $SOURCE
			secret $SECRET
			public_url `+public+`
		}
		upstream
	}`, counting(new(atomic.Int64)))
	v, err := verify.New(verify.Config{Sender: "twilio", PublicURL: public, Secrets: []verify.Secret{{Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(signed, body string) *http.Response {
		h, err := v.Sign(verify.SignInput{URL: public, Body: []byte(signed)})
		if err != nil {
			t.Fatal(err)
		}
		r := mailed(body)
		r.Header = h
		return g.do(r)
	}
	const sent, delivered = "MessageSid=SM1&MessageStatus=sent", "MessageSid=SM1&MessageStatus=delivered"
	expect(t, send(sent, sent), 200, "first")
	expect(t, send(sent, sent), 200, "duplicate")
	expect(t, send(sent, "MessageStatus=sent&MessageSid=SM1"), 200, "duplicate")
	expect(t, send(delivered, delivered), 200, "first")
	expect(t, send(sent, delivered), 401, "")
}
