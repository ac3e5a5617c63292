package caddymodule

import (
	"errors"
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
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/explain"
)

// explaining is what the command line says of a saved delivery.
type explaining struct {
	config, adapter, route          string
	sender, secretFormat, publicURL string
	secrets                         []string
	request, headers, body          string
	method, url, at                 string
}

func explainCommand() *cobra.Command {
	var x explaining
	cmd := &cobra.Command{
		Use: `explain (--request <file> | --headers <file> --body <file>)
  (--sender <name> --secret <secret>... | --config <file> [--route <source>])`,
		Short: "Says whether a saved delivery verifies, and if not, why",
		Long: `Judges a delivery that was saved to files as a route would, and if its signature
does not match, tries what usually goes wrong and names the change with which it
does: another secret or format of the secret, a body that was changed on its way
or when it was saved, another header, algorithm or payload, another URL.

--request is a file with the whole request: a request line (or none), the header
lines, an empty line, and the body byte for byte. --headers and --body are its
parts. The route is the one of a configuration (--config, and --route if there
are several), or a sender and its secrets.

The age of the delivery is judged by --at, the time when it arrived. Without it
only the signature is judged.

No secret and no signature is printed. The exit status is 0 if the delivery would
be let through.`,
		Example: `  caddy webhook-dedupe explain --request delivery.txt --config Caddyfile
  caddy webhook-dedupe explain --headers headers.txt --body body.json \
    --sender stripe --secret @secret.txt --at 2026-01-01T12:00:00Z`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return x.run(os.Stdout) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&x.request, "request", "", "file with the whole request (- for standard input)")
	flags.StringVar(&x.headers, "headers", "", "file with the header lines")
	flags.StringVar(&x.body, "body", "", "file with the body")
	flags.StringVar(&x.config, "config", "", "configuration with the route")
	flags.StringVar(&x.adapter, "adapter", "", "name of the adapter for the configuration")
	flags.StringVar(&x.route, "route", "", "the source of the route, if the configuration has several")
	flags.StringVar(&x.sender, "sender", "", "the sender, if there is no configuration")
	flags.StringArrayVar(&x.secrets, "secret", nil, "the secret, or @file; may be repeated")
	flags.StringVar(&x.secretFormat, "secret-format", "", "text, base64 or hex (default the sender's)")
	flags.StringVar(&x.publicURL, "public-url", "", "the URL that the sender was told, if it signs that")
	flags.StringVar(&x.method, "method", "", "the method (default that of the request line, or POST)")
	flags.StringVar(&x.url, "url", "", "the URL, or its path and query (default that of the request line, or /)")
	flags.StringVar(&x.at, "at", "", "when the delivery arrived, in RFC 3339 or Unix seconds")
	cmd.MarkFlagsMutuallyExclusive("request", "headers")
	cmd.MarkFlagsMutuallyExclusive("request", "body")
	cmd.MarkFlagsMutuallyExclusive("config", "sender")
	cmd.MarkFlagsOneRequired("config", "sender")
	cmd.MarkFlagsOneRequired("request", "headers")
	return cmd
}

// run explains the delivery and writes what it found to out.
func (x explaining) run(out io.Writer) (int, error) {
	in := explain.Input{Now: time.Now()}
	var err error
	if in.Request, err = x.delivery(); err != nil {
		return 1, err
	}
	var route *Handler
	var notes []string
	if x.config != "" {
		route, notes, err = x.fromConfig(&in)
	} else {
		route, err = x.fromFlags(&in)
	}
	if err != nil {
		return 1, err
	}
	if x.at != "" {
		if in.Now, err = parseInstant(x.at); err != nil {
			return 1, err
		}
	}
	for _, note := range notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	rep := explain.Explain(in)
	if signedAt, ok := x.onlyOld(rep, in.Now); ok {
		in.Now = signedAt
		rep = explain.Explain(in)
	}
	if name := route.handshakeOf(in, rep.Verified); name != "" {
		fmt.Fprintf(out, "It is the handshake %s, which carries no event and is passed on to the application.\n", name)
		return 0, nil
	}
	writeReport(out, rep, len(in.Config.Secrets), x.at != "")
	if !rep.Verified || rep.IDError != nil {
		return 1, errors.New("the delivery would be refused")
	}
	return 0, nil
}

// onlyOld tells whether nothing is wrong but the age, which nobody asked to be
// judged: a saved delivery is always old.
func (x explaining) onlyOld(rep explain.Report, now time.Time) (signedAt time.Time, ok bool) {
	const years = 5 * 366 * 24 * time.Hour // more is another unit
	stale, ok := errors.AsType[*verify.Error](rep.Reason)
	if !ok || x.at != "" || !errors.Is(stale, verify.ErrStale) || stale.Age == 0 || stale.Age.Abs() > years {
		return time.Time{}, false
	}
	return now.Add(-stale.Age), true
}

func writeReport(out io.Writer, rep explain.Report, secrets int, timed bool) {
	if rep.Verified {
		fmt.Fprintln(out, "The signature matches.")
		if secrets > 1 {
			fmt.Fprintf(out, "secret: number %d\n", rep.Secret+1)
		}
		if !rep.Timestamp.IsZero() {
			fmt.Fprintf(out, "signed at: %s", rep.Timestamp.UTC().Format(time.RFC3339))
			if !timed {
				fmt.Fprint(out, " (its age is not judged without --at)")
			}
			fmt.Fprintln(out)
		}
		if rep.IDError != nil {
			fmt.Fprintf(out, "event id: none (%v)\n", rep.IDError)
		}
		for _, id := range rep.EventIDs {
			fmt.Fprintf(out, "event id: %s\n", shortened(id.Text))
		}
		return
	}
	fmt.Fprintf(out, "It does not verify: %v\n", rep.Reason)
	for _, c := range rep.Clues {
		fmt.Fprintf(out, "clue: %s (%s)\n", c.Text, c.Code)
	}
	for _, r := range rep.Repairs {
		fmt.Fprintf(out, "It would verify so: %s (%s)\n", r.Text, r.Code)
	}
	if verify.Reason(rep.Reason) != "" && rep.Tried > 0 && len(rep.Repairs) == 0 {
		fmt.Fprintf(out, "None of %d usual changes makes the signature match: the secret is another one, or the body is not what was signed.\n", rep.Tried)
	}
}

// delivery reads the saved request.
func (x explaining) delivery() (*verify.Request, error) {
	name := x.request
	if name == "" {
		name = x.headers
	}
	dump, err := argument("@" + name)
	if err != nil {
		return nil, err
	}
	r, err := explain.ParseRequest(dump)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if x.body != "" {
		if r.Body, err = argument("@" + x.body); err != nil {
			return nil, err
		}
	}
	if x.method != "" {
		r.Method = x.method
	}
	if x.url != "" {
		r.URI = x.url
	}
	if u, err := url.Parse(r.URI); err == nil && u.Host != "" {
		r.URI = u.RequestURI()
	}
	r.Header.Del(resultHeader)
	return r, nil
}

func (x explaining) fromFlags(in *explain.Input) (*Handler, error) {
	sender, _ := verify.SenderNamed(x.sender)
	if sender.Authenticator != "" {
		return nil, errNoToken
	}
	in.Config = verify.Config{Sender: x.sender, SecretFormat: x.secretFormat, PublicURL: x.publicURL}
	if sender.NoEventID != "" {
		in.Config.EventID = []verify.IDSource{{Kind: verify.NoID}} // the route's choice is not known here
	}
	for _, s := range x.secrets {
		value, err := argument(s)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(s, "@") { // an editor's line end is no part of it
			value = []byte(strings.TrimRight(string(value), "\r\n"))
		}
		in.Config.Secrets = append(in.Config.Secrets, verify.Secret{Value: string(value)})
	}
	return &Handler{Sender: x.sender, PublicURL: x.publicURL}, nil
}

// handshakeOf names the handshake of the route that the saved delivery is, if it
// is one.
func (h *Handler) handshakeOf(in explain.Input, verified bool) string {
	sender, _ := verify.SenderNamed(h.Sender)
	v, err := verify.New(in.Config)
	if err != nil || h.setHandshakes(sender) != nil {
		return ""
	}
	saved := in.Request
	r := &http.Request{Method: saved.Method, RequestURI: saved.URI, Header: saved.Header}
	content := saved.Content
	if content == nil {
		content = saved.Body
	}
	for _, hs := range h.handshakes {
		if verified && hs.fitsSigned(saved.Method, content) || hs.fitsBody(saved.Body) && hs.fitsHead(r, h.ownQuery, v) {
			return hs.name
		}
	}
	return ""
}

// parseInstant reads RFC 3339 or Unix seconds.
func parseInstant(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	var seconds int64
	if _, err := fmt.Sscanf(s, "%d", &seconds); err != nil || fmt.Sprint(seconds) != s {
		return time.Time{}, fmt.Errorf("--at %q is neither an RFC 3339 time, such as 2026-01-01T12:00:00Z, nor Unix seconds", s)
	}
	return time.Unix(seconds, 0), nil
}
