package verify

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"
)

const swSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestSendersAreListedInOrder(t *testing.T) {
	want := []string{"github", "paymos", "stableops", "standard-webhooks", "stripe", "svix"}
	if got := Senders(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if _, ok := SenderNamed("Stripe"); ok {
		t.Error("names are exact")
	}
}

func TestPresetsKnowTheirSenders(t *testing.T) {
	for name, want := range map[string]struct {
		tolerance, window, attempt time.Duration
		timestamp, idSigned        bool
	}{
		"github":            {0, 72 * time.Hour, 10 * time.Second, false, false},
		"paymos":            {5 * time.Minute, 16*time.Hour + 3*time.Minute, 10 * time.Second, true, true},
		"stableops":         {5 * time.Minute, 16 * time.Hour, 10 * time.Second, true, false},
		"standard-webhooks": {5 * time.Minute, 75*time.Hour + 35*time.Minute, 15 * time.Second, true, true},
		"stripe":            {5 * time.Minute, 72 * time.Hour, 0, true, true},
		"svix":              {5 * time.Minute, 27*time.Hour + 35*time.Minute, 15 * time.Second, true, true},
	} {
		s, ok := SenderNamed(name)
		v := preset(t, name, swSecret)
		if !ok || s.Name != name || s.Tolerance != want.tolerance || s.RetryWindow != want.window || s.AttemptTimeout != want.attempt {
			t.Errorf("%s: %+v", name, s)
		}
		if v.HasTimestamp() != want.timestamp || v.IDSigned() != want.idSigned || v.Tolerance() != want.tolerance {
			t.Errorf("%s: timestamp %v, id signed %v, tolerance %v", name, v.HasTimestamp(), v.IDSigned(), v.Tolerance())
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
	want := customSchemes["sanity"].Scheme
	data, err := json.Marshal(want)
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
