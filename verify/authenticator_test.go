package verify

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// gatekeeper accepts what has its name in a header.
type gatekeeper string

func (g gatekeeper) Authenticate(r *Request, now time.Time) error {
	if r.Header.Get("X-Gate") != string(g) || !now.Equal(noon) {
		return ErrForged
	}
	return nil
}

func (g gatekeeper) Identity() string { return string(g) }

// gated is a configuration with an authenticator and the id in the body.
func gated(change ...func(*Config)) Config {
	c := Config{Authenticator: gatekeeper("open"), EventID: []IDSource{{FromJSON, "id"}}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestAuthenticatorTakesThePlaceOfSignatures(t *testing.T) {
	v := mustNew(t, gated())
	r := post(`{"id":"evt_1"}`, "X-Gate: open")
	res := accept(t, v, r)
	if res.Secret != -1 || !res.Timestamp.IsZero() {
		t.Errorf("got %+v", res)
	}
	if id := idOf(t, v, r); id.Text != "evt_1" || id.HeaderDiffers {
		t.Errorf("got %+v", id)
	}
	refuse(t, v, post(`{"id":"evt_1"}`, "X-Gate: shut"), ErrForged)
	noID(t, v, post(`{}`, "X-Gate: open"), ErrMissingID)
}

// TestTokenCoversNothing: what the defaults of a route hang on.
func TestTokenCoversNothing(t *testing.T) {
	v := mustNew(t, gated())
	if v.HasTimestamp() || v.IDSigned() || v.Tolerance() != 0 {
		t.Errorf("timestamp %v, id signed %v, tolerance %v", v.HasTimestamp(), v.IDSigned(), v.Tolerance())
	}
	if _, err := v.Sign(SignInput{ID: "evt_1"}); err == nil || !strings.Contains(err.Error(), "only its issuer can make") {
		t.Errorf("signed: %v", err)
	}
}

func TestFingerprintKnowsTheAuthenticator(t *testing.T) {
	base := mustNew(t, gated()).Fingerprint()
	if mustNew(t, gated()).Fingerprint() != base {
		t.Error("two that are the same differ")
	}
	for name, change := range map[string]func(*Config){
		"another authenticator": func(c *Config) { c.Authenticator = gatekeeper("ajar") },
		"another id":            func(c *Config) { c.EventID = []IDSource{{FromHeader, "X-Id"}} },
	} {
		if mustNew(t, gated(change)).Fingerprint() == base {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestAuthenticatorExcludesSignatures(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		reason string
	}{
		"secrets":       {secrets("x"), "secrets exclude each other"},
		"secret format": {func(c *Config) { c.SecretFormat = Hex }, "secrets exclude each other"},
		"scheme":        {func(c *Config) { c.Scheme = &Scheme{Headers: []string{"X-Sig"}} }, "exclude each other"},
		"signer":        {func(c *Config) { c.Sender = "stripe" }, "signs its deliveries"},
		"unknown":       {func(c *Config) { c.Sender = "nobody" }, "unknown sender"},
		"no event id":   {func(c *Config) { c.EventID = nil }, "no event_id"},
		"bad event id":  {func(c *Config) { c.EventID = []IDSource{{FromHeader, "X_Id"}} }, "Caddy drops"},
		"tolerance":     {func(c *Config) { c.Tolerance = time.Hour }, "tolerance"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := New(gated(test.change))
			if v != nil || err == nil || !strings.Contains(err.Error(), test.reason) || Reason(err) != "" {
				t.Errorf("got %v; want %q", err, test.reason)
			}
		})
	}
	if errors.Is(ErrNoKeys, ErrForged) {
		t.Error("what cannot be checked is no forgery")
	}
}
