package verify

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const swSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestSendersAreListedInOrder(t *testing.T) {
	names := Senders()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("got %v", names)
	}
	if _, ok := SenderNamed("Stripe"); ok {
		t.Error("names are exact")
	}
}

// all calls f with every preset and a verifier for it.
func all(t *testing.T, f func(t *testing.T, s Sender, v *Verifier)) {
	for _, name := range Senders() {
		t.Run(name, func(t *testing.T) {
			s, _ := SenderNamed(name)
			f(t, s, sender(t, name))
		})
	}
}

func TestEverySenderSaysWhereItsFactsAreFrom(t *testing.T) {
	all(t, func(t *testing.T, s Sender, _ *Verifier) {
		if len(s.Sources) == 0 || s.Title == "" || s.SecretFormat == "" || (len(s.Schemes) == 0) != (s.Authenticator != "") {
			t.Errorf("incomplete: %+v", s)
		}
		for _, text := range slices.Concat(s.Notes, s.Sources, []string{s.NoEventID}) {
			if strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n|") {
				t.Errorf("%q does not fit into a line of Markdown", text)
			}
		}
		for _, sentence := range append(s.Notes, s.NoEventID) {
			if sentence != "" && !strings.HasSuffix(sentence, ".") {
				t.Errorf("%q does not end as a sentence does", sentence)
			}
		}
		if s.WindowAssumed && s.RetryWindow == 0 {
			t.Error("a window of nothing is assumed")
		}
	})
}

func TestEverySenderHasAnIDOrAReason(t *testing.T) {
	all(t, func(t *testing.T, s Sender, v *Verifier) {
		has := len(s.EventID) > 0 || len(s.Schemes) > 0 && s.Schemes[0].IDHeader != ""
		if has == (s.NoEventID != "") {
			t.Errorf("id %v, and %q", s.EventID, s.NoEventID)
		}
		if has && len(v.schemes) == len(s.Schemes) && s.IDSigned() != v.IDSigned() {
			t.Errorf("the table says signed %v, the verifier %v", s.IDSigned(), v.IDSigned())
		}
		if has && s.IDChanges == ChangesOnRetry {
			t.Error("an id that every attempt changes tells no copies apart")
		}
		c := Config{Sender: s.Name, PublicURL: "https://h.test", Secrets: []Secret{{Value: SampleSecret(s.Name)}}}
		if s.Authenticator != "" {
			c = Config{Sender: s.Name, Authenticator: gatekeeper("open")}
		}
		if _, err := New(c); (err == nil) != has {
			t.Errorf("without a choice of the route's: %v", err)
		}
	})
}

func TestTolerancesFitTheSchemes(t *testing.T) {
	all(t, func(t *testing.T, s Sender, v *Verifier) {
		if (s.Tolerance != 0) != v.HasTimestamp() {
			t.Errorf("tolerance %v, timestamp %v", s.Tolerance, v.HasTimestamp())
		}
		if s.SignedOnce && s.Tolerance > 0 && s.Tolerance <= s.RetryWindow {
			t.Errorf("a retry after %v would be stale after %v", s.RetryWindow, s.Tolerance)
		}
		if want := max(s.Tolerance, 0); v.Tolerance() != want {
			t.Errorf("the verifier's is %v, want %v", v.Tolerance(), want)
		}
	})
}

// Where the id is unsigned, a route takes another body for another event, unless
// the body changes by itself: then only a signed time keeps old bodies away, or a
// token, without which nobody can send any body.
func TestBodiesThatChangeNeedASignedIDOrTime(t *testing.T) {
	all(t, func(t *testing.T, s Sender, v *Verifier) {
		if s.BodyChanges && !v.IDSigned() && s.Tolerance <= 0 && s.Authenticator == "" {
			t.Error("neither the id nor the time is signed")
		}
		if s.BodyChanges && s.IDReused {
			t.Error("nothing tells a retry from another event")
		}
	})
}

func TestDuplicatesAreAnsweredAsTheSenderWants(t *testing.T) {
	all(t, func(t *testing.T, s Sender, _ *Verifier) {
		status := s.Duplicate.Status
		if status == 0 {
			status = 200
		}
		if status < 200 || status > 299 || len(s.Success) > 0 && !slices.Contains(s.Success, status) {
			t.Errorf("%d for a duplicate, of %v", status, s.Success)
		}
		if s.Duplicate.Body != "" && s.Duplicate.ContentType == "" {
			t.Error("a body without its type")
		}
		for _, success := range s.Success {
			if success < 200 || success > 299 {
				t.Errorf("success %d", success)
			}
		}
	})
}

func TestTimesAreOnesThatCanBe(t *testing.T) {
	all(t, func(t *testing.T, s Sender, _ *Verifier) {
		if s.RetryWindow < 0 || s.RetryWindow > 31*day || s.AttemptTimeout < 0 || s.AttemptTimeout > 2*time.Minute || s.Tolerance > 31*day {
			t.Errorf("window %v, attempt %v, tolerance %v", s.RetryWindow, s.AttemptTimeout, s.Tolerance)
		}
	})
}

func TestObviousIDsThatLoseEventsAreNotTaken(t *testing.T) {
	for name, never := range map[string]IDSource{
		"box":             {FromHeader, "BOX-DELIVERY-ID"},
		"paddle":          {FromJSON, "notification_id"},
		"linear":          {FromJSON, "webhookId"},
		"stableops":       {FromHeader, "X-Delivery-Id"},
		"openai":          {FromJSON, "id"},
		"lemon-squeezy":   {FromJSON, "meta.webhook_id"},
		"terraform-cloud": {FromJSON, "run_id"},
	} {
		if s, ok := SenderNamed(name); !ok || slices.Contains(s.EventID, never) {
			t.Errorf("%s: %v", name, s.EventID)
		}
	}
	for name, other := range map[string]string{
		"shopify":     "X-Shopify-Webhook-Id", // another subscription to the same event
		"woocommerce": "",                     // the same second
		"paystack":    "",                     // another status of the same invoice
	} {
		s, _ := SenderNamed(name)
		headers := http.Header{}
		for _, id := range s.EventID {
			if id.Kind == FromHeader {
				headers.Set(id.Name, "1")
			}
		}
		key := func(body string) string {
			id, err := sender(t, name).EventID(&Request{Header: headers, Body: []byte(body)}, Result{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return id.Key
		}
		body := `{"event":"invoice.update","data":{"id":1,"status":"a"}}`
		before := key(body)
		if other != "" {
			headers.Set(other, "2")
		} else {
			body = `{"event":"invoice.update","data":{"id":1,"status":"b"}}`
		}
		if key(body) == before && !s.IDReused {
			t.Errorf("%s: two events have one key", name)
		}
	}
}

func TestSendersWithoutSignatureOrIDAreRefusedWithTheReason(t *testing.T) {
	for name, want := range map[string]string{
		"mollie": "lose events", "mollie-classic": "mollie-next", "docker-hub": "signs nothing", "strype": "there are adyen, adyen-banking, airwallex,",
	} {
		_, err := New(Config{Sender: name, Secrets: []Secret{{Value: "s"}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPresetsCannotBeChanged(t *testing.T) {
	s, _ := SenderNamed("svix")
	s.Schemes[0].Headers[0] = "X-Evil"
	if again, _ := SenderNamed("svix"); again.Schemes[0].Headers[0] != "svix-signature" {
		t.Error("the table was changed")
	}
}

func TestSchemesSurviveJSON(t *testing.T) {
	sanity, _ := SenderNamed("sanity")
	data, err := json.Marshal(sanity.Schemes[0])
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"header":["sanity-webhook-signature"],"label":["v1"],"encoding":"base64url","payload":"{timestamp}.{body}","timestamp":{"field":"t","unit":"unix_ms"}}`
	if string(data) != text {
		t.Errorf("got %s", data)
	}
	if data, _ = json.Marshal(Scheme{Headers: []string{"A"}}); string(data) != `{"header":["A"]}` {
		t.Errorf("got %s", data)
	}
}

func TestEveryReasonIsAStableWord(t *testing.T) {
	for word, kind := range map[string]*Error{
		"unsigned": ErrUnsigned, "forged": ErrForged, "stale": ErrStale, "keys": ErrNoKeys,
		"missing_id": ErrMissingID, "ambiguous_id": ErrAmbiguousID, "bad_id": ErrBadID,
	} {
		err := errors.Join(errors.New("context"), kind.because("detail"))
		if Reason(err) != word || !errors.Is(err, kind) || kind.Error() != word {
			t.Errorf("%s: %v", word, err)
		}
	}
	if Reason(nil) != "" || Reason(errors.New("x")) != "" || errors.Is(ErrForged, ErrStale) {
		t.Error("reasons are mixed up")
	}
	if got := ErrStale.because("old").Error(); got != "stale: old" {
		t.Errorf("got %q", got)
	}
}
