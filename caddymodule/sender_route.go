package caddymodule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// written is a preset as a route with a block of its own.
type written struct {
	when  string // says for which deliveries, if the sender has several schemes
	route string
}

// customRoutes writes the routes that a preset stands for with a block of their
// own, one for each of the sender's schemes. There are none where no payload can
// say what is signed.
func customRoutes(s verify.Sender) (routes []written) {
	if s.Authenticator != "" {
		return []written{{route: customRoute(s, verify.Scheme{})}}
	}
	for _, scheme := range s.Schemes {
		if scheme.Form == "" && !isPrivate(scheme) {
			routes = append(routes, written{route: customRoute(s, scheme)})
		}
	}
	if len(routes) > 1 {
		for i := range routes {
			routes[i].when = schemeTell(s, i)
		}
	}
	return routes
}

// isPrivate reports whether the secrets of a scheme are private keys, which are
// for tests.
func isPrivate(s verify.Scheme) bool { return s.SecretPrefix == "whsk_" }

// schemeTell says what deliveries of one of a sender's schemes are known by.
func schemeTell(s verify.Sender, at int) string {
	scheme := s.Schemes[at]
	switch {
	case scheme.SecretPrefix == "whpk_":
		return "if the secret is a public key; write it without `whpk_`"
	case scheme.SecretPrefix != "":
		return "if the secret begins with `" + scheme.SecretPrefix + "`"
	case at > 0 && s.Schemes[0].SecretPrefix != "":
		return "if it does not"
	}
	return "for signatures in the header " + scheme.Headers[0]
}

func customRoute(s verify.Sender, scheme verify.Scheme) string {
	var b strings.Builder
	line := func(name string, values ...string) {
		if len(values) > 0 && strings.Join(values, "") != "" {
			fmt.Fprintf(&b, "\t%-15s %s\n", name, quoted(values))
		}
	}
	b.WriteString("webhook_dedupe {\n")
	line("source", s.Name)
	if s.Authenticator != "" {
		b.WriteString("\toidc {\n\t\taudience    https://example.com/webhooks/" + s.Name + "\n\t\temail       pusher@my-project.iam.gserviceaccount.com\n\t}\n")
	} else {
		line("secret", "{env."+strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))+"_SECRET}")
		writeSignature(&b, scheme)
		line("secret_format", unless(verify.Text, or(scheme.SecretFormat, s.SecretFormat)))
	}
	for _, id := range customID(s, scheme) {
		if id.Name == "" {
			line("event_id", id.Kind)
		} else {
			line("event_id", id.Kind, id.Name)
		}
	}
	switch signsTime := scheme.Timestamp != (verify.Timestamp{}); {
	case signsTime && s.Tolerance < 0:
		line("tolerance", "off")
	case signsTime && s.Tolerance > 0:
		line("tolerance", span(s.Tolerance))
	}
	if s.RetryWindow > 0 {
		line("retry_window", span(s.RetryWindow))
	}
	if s.NoEventID == "" && idCounts(s) {
		line("on_reused_id", "duplicate")
	}
	if signsURL(s) {
		line("public_url", "https://example.com/webhooks/"+s.Name)
	}
	if wait := usualWait(s); wait != defaultWait {
		line("wait", span(wait))
	}
	if d := s.Duplicate; d.Status != 0 {
		line("duplicate", strconv.Itoa(d.Status), d.Body, d.ContentType)
	}
	line("handshake", s.Handshakes...)
	b.WriteString("}\n")
	return b.String()
}

// customID is the preset's event id, or what a route may write in its place.
func customID(s verify.Sender, scheme verify.Scheme) []verify.IDSource {
	switch {
	case s.NoEventID != "":
		return []verify.IDSource{{Kind: verify.NoID}}
	case len(s.EventID) == 0:
		return []verify.IDSource{{Kind: verify.FromHeader, Name: scheme.IDHeader}}
	}
	return s.EventID
}

func writeSignature(b *strings.Builder, s verify.Scheme) {
	line := func(name string, values ...string) {
		if len(values) > 0 && strings.Join(values, "") != "" {
			fmt.Fprintf(b, "\t\t%-11s %s\n", name, quoted(values))
		}
	}
	b.WriteString("\tsignature {\n")
	line("header", s.Headers...)
	line("separator", s.Separator)
	line("label", s.Labels...)
	line("prefix", s.Prefix)
	line("algorithm", unless(verify.SHA256, s.Algorithm))
	line("encoding", unless(verify.Hex, s.Encoding))
	line("payload", s.Payload)
	switch t := s.Timestamp; {
	case t.Field != "":
		line("timestamp", "field", t.Field, or(t.Unit, verify.UnixSeconds))
	case t.Header != "":
		line("timestamp", "header", t.Header, or(t.Unit, verify.UnixSeconds))
	case t.JSON != "":
		line("timestamp", "json", t.JSON, or(t.Unit, verify.UnixSeconds))
	}
	b.WriteString("\t}\n")
}

// unless returns value if it is not the usual one.
func unless(usual, value string) string {
	if value == usual {
		return ""
	}
	return value
}

// quoted writes values as the arguments of a Caddyfile line.
func quoted(values []string) string {
	args := make([]string, len(values))
	for i, v := range values {
		if args[i] = v; v == "" || strings.ContainsAny(v, " \t\"`") {
			args[i] = strconv.Quote(v)
		}
	}
	return strings.Join(args, " ")
}

func signsURL(s verify.Sender) bool {
	for _, scheme := range s.Schemes {
		if strings.Contains(scheme.Payload, "{url}") || scheme.Form == "twilio" {
			return true
		}
	}
	return false
}

// span writes a duration as people and Caddyfiles do.
func span(d time.Duration) string {
	if days := d / (24 * time.Hour); d > 0 && d == days*24*time.Hour {
		return fmt.Sprintf("%dd", days)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
