package verify

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
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
	id, err := v.EventID(r, res)
	if err != nil || id.Text != x.EventID {
		t.Errorf("event id %q (%v), want %q", id.Text, err, x.EventID)
	}
}

func TestEveryVectorOfThePresetsIsJudgedAsItsSenderWould(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range loadVectors(t, "vectors.json") {
		seen[x.Scheme] = true
		t.Run(x.ID, func(t *testing.T) { x.run(t, Config{Sender: x.Scheme}) })
	}
	for _, name := range Senders() {
		if !seen[name] {
			t.Errorf("no vector for %s", name)
		}
	}
}

func TestSvixAcceptsUnbrandedHeaders(t *testing.T) {
	n := 0
	for _, x := range loadVectors(t, "vectors.json") {
		if x.Scheme == "standard-webhooks" {
			n++
			t.Run(x.ID, func(t *testing.T) { x.run(t, Config{Sender: "svix"}) })
		}
	}
	if n == 0 {
		t.Error("no vectors")
	}
}

func TestKnobsExpressOtherSendersOfHMAC(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range loadVectors(t, "vectors_custom.json") {
		c, ok := customSchemes[x.Scheme]
		if !ok {
			t.Errorf("no scheme for vector %s", x.ID)
			continue
		}
		seen[x.Scheme] = true
		t.Run(x.ID, func(t *testing.T) {
			if slices.Contains(beyondTheKnobs, x.ID) {
				t.Skip("the sender's timestamp is in the body")
			}
			scheme := c.Scheme
			config := Config{Scheme: &scheme, SecretFormat: c.format, EventID: c.id}
			if len(c.id) == 0 {
				config.EventID = []IDSource{{Kind: FromBodySHA256}}
			}
			if u, err := url.Parse(x.URL); err == nil {
				config.PublicURL = u.Scheme + "://" + u.Host
			}
			if c.id == nil {
				x.EventID = ""
			}
			if x.Scheme == "paystack" { // the vector writes its composite otherwise
				x.EventID = paystackText(x.EventID)
			}
			if !scheme.Timestamp.set() {
				x.Tolerance = nil
			}
			x.run(t, config)
		})
	}
	for name := range customSchemes {
		if !seen[name] {
			t.Errorf("no vector for %s", name)
		}
	}
}
