package caddymodule

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// sending is one test delivery, as the command line describes it.
type sending struct {
	sender, secret, url, id, body, method string
	timeout                               time.Duration
}

func sendCommand() *cobra.Command {
	var s sending
	cmd := &cobra.Command{
		Use:   "send --sender <name> --secret <secret> --url <url> [--event-id <id>] [--body @<file>]",
		Short: "Signs and sends a test delivery",
		Long: `Makes a delivery as the given sender would, signs it with the secret and sends
it to the URL. Send it twice with the same event id, and the second one is a
duplicate.

Without --body a small sample of the sender's events is sent. The secret and the
body may be read from a file (@file) or from standard input (@-).

For a sender whose secret is a public key, --secret is the private one, in the
same format: of Ed25519 the 64 bytes that end in the public key, of ECDSA a
PKCS #8 or SEC 1 structure. The route may have either.

The exit status is 0 if the answer is a 2xx.`,
		Example: `  caddy webhook-dedupe send --sender paymos --secret @secret.txt \
    --url http://localhost:8080/webhooks/paymos --event-id evt_1`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return s.run(os.Stdout) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.sender, "sender", "", "the sender; caddy webhook-dedupe senders lists them")
	flags.StringVar(&s.secret, "secret", "", "the secret, or @file")
	flags.StringVar(&s.url, "url", "", "where to send it")
	flags.StringVar(&s.id, "event-id", "", "the event id (default a new one)")
	flags.StringVar(&s.body, "body", "", "the body, or @file (default a sample that carries the event id)")
	flags.StringVar(&s.method, "method", http.MethodPost, "the method")
	flags.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
	for _, required := range []string{"sender", "secret", "url"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err)
		}
	}
	return cmd
}

// run sends the delivery and writes what came back to out.
func (s sending) run(out io.Writer) (int, error) {
	req, err := s.request()
	if err != nil {
		return 1, err
	}
	client := &http.Client{
		Timeout:       s.timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 1, err
	}
	defer resp.Body.Close()
	if s.id != "" {
		fmt.Fprintf(out, "event id: %s\n", s.id)
	}
	fmt.Fprintf(out, "status: %s\n", resp.Status)
	for _, name := range []string{resultHeader, "Retry-After"} {
		if value := resp.Header.Get(name); value != "" {
			fmt.Fprintf(out, "%s: %s\n", name, value)
		}
	}
	if body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)); len(body) > 0 {
		fmt.Fprintf(out, "\n%s\n", bytes.TrimSpace(body))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return 1, fmt.Errorf("the answer is %s", resp.Status) // Caddy exits with 0 without an error
	}
	return 0, nil
}

// request makes the signed request.
func (s *sending) request() (*http.Request, error) {
	verifier, err := s.signer()
	if err != nil {
		return nil, err
	}
	header, body, err := s.signed(verifier)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(s.method, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "caddy-webhook-dedupe")
	return req, nil
}

// signer makes the verifier that signs. What a preset leaves to the route makes
// no difference to a signature.
func (s *sending) signer() (*verify.Verifier, error) {
	if sender, _ := verify.SenderNamed(s.sender); sender.Authenticator != "" {
		return nil, fmt.Errorf("deliveries of %s carry a token that only its issuer can make: there is nothing to sign with", s.sender)
	}
	secret, err := argument(s.secret)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(s.url); err != nil || u.Host == "" {
		return nil, fmt.Errorf("--url %q is no absolute URL", s.url)
	}
	c := verify.Config{
		Sender: s.sender, PublicURL: s.url,
		Secrets: []verify.Secret{{Value: strings.TrimRight(string(secret), "\r\n")}},
	}
	if sender, _ := verify.SenderNamed(s.sender); sender.NoEventID != "" {
		c.EventID = []verify.IDSource{{Kind: verify.NoID}}
	}
	return verify.New(c)
}

// signed makes the headers and the body, and finds out which event they are of.
func (s *sending) signed(verifier *verify.Verifier) (header http.Header, body []byte, err error) {
	id := s.id
	if id == "" && s.body == "" {
		id = newEventID()
	}
	body = verify.SampleBody(s.sender, id)
	if s.body != "" {
		if body, err = argument(s.body); err != nil {
			return nil, nil, err
		}
	}
	now := time.Now()
	if body, err = verifier.SignBody(verify.SignInput{Body: body, Now: now}); err != nil {
		return nil, nil, err
	}
	sign := func() (http.Header, error) {
		return verifier.Sign(verify.SignInput{Method: s.method, URL: s.url, Body: body, ID: id, Now: now})
	}
	if header, err = sign(); err != nil && id == "" {
		id = newEventID() // the body of this sender does not hold it
		header, err = sign()
	}
	if err != nil {
		return nil, nil, err
	}
	s.id = s.eventID(verifier, header, body, id, now)
	return header, body, nil
}

// eventID is what a gateway finds in the delivery: the id that was asked for, a
// composite with it, another one in a body of one's own, or none.
func (s *sending) eventID(verifier *verify.Verifier, header http.Header, body []byte, asked string, now time.Time) string {
	r := &verify.Request{Method: s.method, URI: s.url, Header: header, Body: body}
	res, err := verifier.Verify(r, now)
	if err != nil {
		return asked
	}
	ids, err := verifier.EventIDs(r, res)
	if err != nil {
		return asked
	}
	var texts []string
	for _, found := range ids {
		texts = append(texts, found.Text)
	}
	return strings.Join(texts, " ")
}

func newEventID() string { return "evt_" + strings.ToLower(rand.Text()) }
