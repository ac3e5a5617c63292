package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// noon is the time of most tests.
var noon = time.Unix(1767225600, 0)

const testSecret = "whsec_0123456789abcdefABCDEF"

func mustNew(t testing.TB, c Config) *Verifier {
	t.Helper()
	v, err := New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return v
}

// preset is a verifier for a sender with one secret.
func preset(t testing.TB, sender, secret string) *Verifier {
	t.Helper()
	return mustNew(t, Config{Sender: sender, Secrets: []Secret{{Value: secret}}})
}

// sender is a verifier for any sender, with a secret in its format and what the
// preset leaves to the route.
func sender(t testing.TB, name string) *Verifier {
	t.Helper()
	c := presetConfig(name, "https://h.test")
	c.Secrets = []Secret{{Value: SampleSecret(name)}}
	if s, _ := SenderNamed(name); s.Authenticator != "" {
		c.Secrets, c.Authenticator = nil, gatekeeper("open")
	}
	return mustNew(t, c)
}

// signingSenders are the names of all senders but those with a token.
func signingSenders() []string {
	return slices.DeleteFunc(Senders(), func(name string) bool {
		s, _ := SenderNamed(name)
		return s.Authenticator != ""
	})
}

// custom is a verifier for a scheme, whose header defaults to X-Sig and whose
// event id to X-Id.
func custom(t testing.TB, s Scheme, change ...func(*Config)) *Verifier {
	t.Helper()
	return mustNew(t, customConfig(s, change...))
}

func customConfig(s Scheme, change ...func(*Config)) Config {
	if s.Headers == nil {
		s.Headers = []string{"X-Sig"}
	}
	c := Config{Scheme: &s, Secrets: []Secret{{Value: testSecret}}, EventID: []IDSource{{FromHeader, "X-Id"}}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func secrets(values ...string) func(*Config) {
	return func(c *Config) {
		c.Secrets = nil
		for _, v := range values {
			c.Secrets = append(c.Secrets, Secret{Value: v})
		}
	}
}

func eventID(sources ...IDSource) func(*Config) {
	return func(c *Config) { c.EventID = sources }
}

// post is a request with headers given as "Name: value".
func post(body string, headers ...string) *Request {
	r := &Request{Method: "POST", URI: "/hook", Header: http.Header{}, Body: []byte(body)}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// sign is the test's own HMAC, independent of the package.
func sign(secret, payload string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(payload))
	return hex.EncodeToString(m.Sum(nil))
}

// paymosHeader is the signature header of Paymos and its like.
func paymosHeader(secret string, at time.Time, body string) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), sign(secret, fmt.Sprintf("%d.%s", at.Unix(), body)))
}

func accept(t *testing.T, v *Verifier, r *Request) Result {
	t.Helper()
	res, err := v.Verify(r, noon)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return res
}

func refuse(t *testing.T, v *Verifier, r *Request, want *Error) *Error {
	t.Helper()
	_, err := v.Verify(r, noon)
	return isKind(t, err, want)
}

func isKind(t *testing.T, err error, want *Error) *Error {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want reason %q", err, want.Reason)
	}
	e, _ := errors.AsType[*Error](err)
	return e
}

// idOf verifies a request and returns its event id.
func idOf(t *testing.T, v *Verifier, r *Request) ID {
	t.Helper()
	id, err := v.EventID(r, accept(t, v, r))
	if err != nil {
		t.Fatalf("no id: %v", err)
	}
	return id
}

// noID verifies a request and returns why it has no event id.
func noID(t *testing.T, v *Verifier, r *Request, want *Error) *Error {
	t.Helper()
	_, err := v.EventID(r, accept(t, v, r))
	return isKind(t, err, want)
}

// jsonVerifier takes the id from path and has an unlabelled signature.
func jsonVerifier(t testing.TB, path string) *Verifier {
	return custom(t, Scheme{}, eventID(IDSource{FromJSON, path}))
}

// signed is a request for jsonVerifier.
func signed(body string, headers ...string) *Request {
	return post(body, append(headers, "X-Sig: "+sign(testSecret, body))...)
}

// urlValues is what net/url finds under "id" in a query.
func urlValues(query string) []string {
	values, _ := url.ParseQuery(query) // keeps what it could read
	return values["id"]
}
