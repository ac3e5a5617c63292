package verify

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// vector is one known delivery and the verdict on it.
type vector struct {
	ID        string            `json:"id"`
	Scheme    string            `json:"scheme"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	BodyB64   string            `json:"body_b64"`
	Secret    string            `json:"secret"`
	Secrets   []string          `json:"secrets"`
	Now       int64             `json:"now"`
	Tolerance *int              `json:"tolerance"`
	Valid     bool              `json:"valid"`
	EventID   string            `json:"event_id"`
}

func loadVectors(t *testing.T, file string) (vs []vector) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(data, &vs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func (x *vector) request(t *testing.T) *Request {
	u, err := url.Parse(x.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: or(x.Method, "POST"), URI: u.RequestURI(), Header: http.Header{}, Body: []byte(x.Body)}
	for k, v := range x.Headers {
		r.Header.Set(k, v)
	}
	if x.BodyB64 != "" {
		if r.Body, err = base64.StdEncoding.DecodeString(x.BodyB64); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run judges the vector by a verifier for c, completed by what the vector says.
func (x *vector) run(t *testing.T, c Config) {
	for _, s := range append(x.Secrets, x.Secret) {
		c.Secrets = append(c.Secrets, Secret{Value: s})
	}
	if x.Tolerance == nil {
		c.Tolerance = ToleranceOff
	} else {
		c.Tolerance = time.Duration(*x.Tolerance) * time.Second
	}
	v, err := New(c)
	if err != nil {
		if x.Valid {
			t.Fatalf("New: %v", err)
		}
		return // a wrong secret may be refused at once
	}
	r := x.request(t)
	res, err := v.Verify(r, time.Unix(x.Now, 0))
	if valid := err == nil; valid != x.Valid {
		t.Fatalf("got %v, want valid=%v", err, x.Valid)
	}
	if err != nil && Reason(err) == "" {
		t.Errorf("error without a reason: %v", err)
	}
	if x.EventID == "" {
		return
	}
	// Where the preset adds to the id that the vector names, that one is first.
	ids, err := v.EventIDs(r, res)
	if err != nil || len(ids) != 1 || ids[0].Text != x.EventID && !strings.HasPrefix(ids[0].Text, x.EventID+":") {
		t.Errorf("event ids %v (%v), want %q", ids, err, x.EventID)
	}
}

// origin is the part of the vector's URL that a route writes as its public URL.
func (x *vector) origin(t *testing.T) string {
	u, err := url.Parse(x.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// presetConfig is a route with a preset, which has written what the preset
// leaves to the route.
func presetConfig(name, url string) Config {
	s, _ := SenderNamed(name)
	c := Config{Sender: name, PublicURL: url}
	if s.NoEventID != "" {
		c.EventID = []IDSource{{Kind: FromBodySHA256}}
	}
	return c
}

// idsElsewhere are vectors whose id is not taken, and why.
var idsElsewhere = map[string]string{
	"gocardless/sdk-run-valid": "it is the delivery's, which carries several events",
}

func TestEveryVectorIsJudgedAsItsSenderWould(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range slices.Concat(loadVectors(t, "vectors.json"), loadVectors(t, "vectors_sdk.json"), loadVectors(t, "vectors_forms.json"), loadVectors(t, "vectors_special.json")) {
		seen[x.Scheme] = true
		t.Run(x.ID, func(t *testing.T) {
			if idsElsewhere[x.ID] != "" {
				x.EventID = ""
			}
			s, ok := SenderNamed(x.Scheme)
			if !ok {
				t.Fatalf("no sender %s", x.Scheme)
			}
			if s.Tolerance == 0 {
				x.Tolerance = nil
			}
			x.run(t, presetConfig(x.Scheme, x.origin(t)))
		})
	}
	seen["openai"] = true // signs as Standard Webhooks
	for _, name := range signingSenders() {
		if !seen[name] {
			t.Errorf("no vector for %s", name)
		}
	}
}

func TestSendersThroughStandardWebhooksShareItsVectors(t *testing.T) {
	n := 0
	for _, x := range loadVectors(t, "vectors.json") {
		if x.Scheme == "standard-webhooks" {
			n++
			for _, sender := range []string{"svix", "openai"} {
				t.Run(sender+"/"+x.ID, func(t *testing.T) { x.run(t, Config{Sender: sender}) })
			}
		}
	}
	if n == 0 {
		t.Error("no vectors")
	}
}

// genericSchemes are written with the knobs that every route has.
var genericSchemes = map[string]Scheme{
	"generic-sha1-list":   {Headers: []string{"X-Signature"}, Prefix: "sha1=", Algorithm: SHA1},
	"generic-sha256-list": {Headers: []string{"X-Signature"}, Prefix: "sha256="},
	"generic-sha512-list": {Headers: []string{"X-Signature"}, Prefix: "sha512=", Algorithm: SHA512},
}

func TestVectorsOfSchemesOfOnesOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range loadVectors(t, "vectors_custom.json") {
		seen[x.Scheme] = true
		t.Run(x.ID, func(t *testing.T) {
			scheme := genericSchemes[x.Scheme]
			x.run(t, Config{Scheme: &scheme, EventID: []IDSource{{Kind: FromBodySHA256}}})
		})
	}
	if len(seen) != len(genericSchemes) {
		t.Errorf("vectors for %v only", seen)
	}
}

// quirk is an input on which a sender's library and others disagree.
type quirk struct {
	vector
	SDKAccepts bool `json:"sdk_accepts"`
}

// departures are the quirks that are judged otherwise than by the sender's
// library, and why. The page of senders tells users the same.
var departures = map[string]string{
	"stripe/space-after-comma":    "spaces around an item mean nothing",
	"sanity/space-after-comma":    "spaces around an item mean nothing",
	"github/leading-space":        "spaces around an item mean nothing",
	"github/uppercase-hex":        "either case of hex digits is the same number",
	"stripe/future-400s":          "a time that far ahead is as wrong as one that far back",
	"slack/future-400s":           "a time that far ahead is as wrong as one that far back",
	"stripe/duplicate-t":          "which of two timestamps counts would be a guess",
	"svix/timestamp-leading-plus": "a timestamp is digits, and the signature is over them as they were sent",
}

func TestQuirksAreJudgedByTheSendersLibraryOrForAReason(t *testing.T) {
	data, err := os.ReadFile("testdata/quirks.json")
	var quirks []quirk
	if err == nil {
		err = json.Unmarshal(data, &quirks)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, q := range quirks {
		t.Run(q.ID, func(t *testing.T) {
			sender, _, _ := strings.Cut(q.ID, "/")
			q.Valid = q.SDKAccepts
			if departures[q.ID] != "" {
				seen++
				q.Valid = !q.SDKAccepts
			}
			q.run(t, presetConfig(sender, q.origin(t)))
		})
	}
	if seen != len(departures) {
		t.Errorf("%d of %d departures are quirks", seen, len(departures))
	}
}
