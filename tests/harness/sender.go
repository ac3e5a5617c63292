package harness

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ecdsa"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ed25519"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/token"
)

// Secret is every route's, unless a test says otherwise. It is one as text and in
// base64.
const Secret = "whsec_YW4gaW52ZW50ZWQga2V5IG9mIDMyIGJ5dGVzISE="

// PublicURL is what every route of a sender that signs the URL says it is.
const PublicURL = "https://hooks.example.test/hook"

// Route returns the name's secret, and the lines that a route with this preset
// needs: what the preset leaves to the route, and a tolerance that a slow machine
// keeps to.
func Route(name string) (secret string, lines []string) {
	s, _ := verify.SenderNamed(name)
	secret = Secret
	if _, err := verify.New(verify.Config{
		Sender: name, PublicURL: PublicURL, Secrets: []verify.Secret{{Value: Secret}},
		EventID: []verify.IDSource{{Kind: verify.NoID}},
	}); err != nil { // it wants hex, or a public key
		secret = verify.SampleSecret(name)
	}
	if s.NoEventID != "" {
		lines = append(lines, "event_id body_sha256")
	}
	if s.Tolerance > 0 {
		lines = append(lines, "tolerance 10m")
	}
	return secret, append(lines, "public_url "+PublicURL)
}

// Sender signs deliveries as a real one does.
type Sender struct {
	// Name is the preset's; empty for a scheme of one's own.
	Name string

	t        testing.TB
	verifier *verify.Verifier
}

// NewSender returns the sender of a preset. Without secrets it uses [Secret].
func NewSender(t testing.TB, name string, secrets ...string) *Sender {
	t.Helper()
	if len(secrets) == 0 {
		secret, _ := Route(name)
		secrets = []string{secret}
	}
	c := verify.Config{Sender: name, PublicURL: PublicURL}
	if facts, _ := verify.SenderNamed(name); facts.NoEventID != "" {
		c.EventID = []verify.IDSource{{Kind: verify.FromBodySHA256}}
	}
	for _, s := range secrets {
		c.Secrets = append(c.Secrets, verify.Secret{Value: s})
	}
	s := CustomSender(t, c)
	s.Name = name
	return s
}

// CustomSender returns a sender with a configuration of one's own.
func CustomSender(t testing.TB, c verify.Config) *Sender {
	t.Helper()
	if len(c.Secrets) == 0 {
		c.Secrets = []verify.Secret{{Value: Secret}}
	}
	v, err := verify.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &Sender{t: t, verifier: v}
}

// Event returns a delivery of an event with a body such as the sender's.
func (s *Sender) Event(id string) *Delivery {
	s.t.Helper()
	return s.Signed(id, verify.SampleBody(s.Name, id), time.Now())
}

// WithBody returns a delivery of an event with a body of one's own.
func (s *Sender) WithBody(id string, body []byte) *Delivery {
	s.t.Helper()
	return s.Signed(id, body, time.Now())
}

// Signed returns a delivery that was signed at a time.
func (s *Sender) Signed(id string, body []byte, at time.Time) *Delivery {
	s.t.Helper()
	return s.sign(verify.SignInput{Body: body, ID: id, Now: at})
}

// ForURL returns a delivery of a sender that signs the URL.
func (s *Sender) ForURL(url, id string, body []byte) *Delivery {
	s.t.Helper()
	return s.sign(verify.SignInput{URL: url, Body: body, ID: id})
}

func (s *Sender) sign(in verify.SignInput) *Delivery {
	s.t.Helper()
	if in.URL == "" {
		in.URL = PublicURL
	}
	var err error
	if in.Body, err = s.verifier.SignBody(in); err != nil {
		s.t.Fatal(err)
	}
	header, err := s.verifier.Sign(in)
	if err != nil {
		s.t.Fatal(err)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	header.Set(EventHeader, in.ID)
	return &Delivery{Event: in.ID, Method: http.MethodPost, Path: "/pay", Header: header, Body: in.Body}
}

// Delivery is one request of a sender, or several equal ones.
type Delivery struct {
	Event   string
	Method  string
	Path    string
	Header  http.Header
	Body    []byte
	Chunked bool
	Trailer http.Header
	// Stream, if set, is sent instead of Body, in chunks.
	Stream io.Reader
}

// To returns a copy of the delivery for another path.
func (d *Delivery) To(path string) *Delivery {
	c := d.copy()
	c.Path = path
	return c
}

// With returns a copy of the delivery with another value of a header. Without
// values the header is taken away.
func (d *Delivery) With(name string, values ...string) *Delivery {
	c := d.copy()
	c.Header.Del(name)
	for _, v := range values {
		c.Header.Add(name, v)
	}
	return c
}

// InChunks returns a copy of the delivery whose body's length is not said.
func (d *Delivery) InChunks() *Delivery {
	c := d.copy()
	c.Chunked = true
	return c
}

func (d *Delivery) copy() *Delivery {
	c := *d
	c.Header = d.Header.Clone()
	return &c
}

func (d *Delivery) request(ctx context.Context, base string) (*http.Request, error) {
	var body io.Reader = bytes.NewReader(d.Body)
	switch {
	case d.Stream != nil:
		body = d.Stream
	case d.Chunked:
		body = struct{ io.Reader }{body} // hides its length
	}
	r, err := http.NewRequestWithContext(ctx, d.Method, base+d.Path, body)
	if err != nil {
		return nil, err
	}
	r.Header = d.Header.Clone()
	if d.Trailer != nil {
		r.Trailer = d.Trailer.Clone()
	}
	r.GetBody = nil // a sender that sends again says so itself
	return r, nil
}

// Head is the delivery's request head as it goes over the wire, for tests that
// write to the connection themselves. It says nothing of the body's length.
func (d *Delivery) Head(host string) string {
	var b strings.Builder
	b.WriteString(d.Method + " " + d.Path + " HTTP/1.1\r\nHost: " + host + "\r\n")
	_ = d.Header.Write(&b)
	return b.String()
}
