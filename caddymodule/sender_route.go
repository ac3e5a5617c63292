package caddymodule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// customRoute writes the route that a preset stands for with a signature block of
// its own, or says why no such block can say the same.
func customRoute(s verify.Sender) (route, whyNot string) {
	if whyNot = beyondCustom(s); whyNot != "" {
		return "", whyNot
	}
	var b strings.Builder
	line := func(name string, values ...string) {
		if len(values) > 0 && strings.Join(values, "") != "" {
			fmt.Fprintf(&b, "\t%-15s %s\n", name, quoted(values))
		}
	}
	b.WriteString("webhook_dedupe {\n")
	line("source", s.Name)
	line("secret", "{env."+strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))+"_SECRET}")
	writeSignature(&b, s.Schemes[0])
	line("secret_format", unless(verify.Text, or(s.Schemes[0].SecretFormat, s.SecretFormat)))
	for _, id := range customID(s) {
		if id.Name == "" {
			line("event_id", id.Kind)
		} else {
			line("event_id", id.Kind, id.Name)
		}
	}
	switch {
	case s.Tolerance < 0:
		line("tolerance", "off")
	case s.Tolerance > 0:
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
	return b.String(), ""
}

// beyondCustom says what of a preset no signature block can say.
func beyondCustom(s verify.Sender) string {
	switch {
	case s.Authenticator != "":
		return "its deliveries are proved by a token, with an `" + s.Authenticator + "` block."
	case s.Schemes[0].Form != "":
		return "no payload can say what is signed."
	case len(s.Schemes) > 1 && s.Schemes[1].SecretPrefix == s.Schemes[0].SecretPrefix:
		var headers []string
		for _, scheme := range s.Schemes {
			headers = append(headers, scheme.Headers...)
		}
		return "it has several schemes, of which a delivery may use any, with signatures in " + strings.Join(headers, " or ") + "."
	case s.UnsignedIDHeader != "":
		return "only a preset compares the signed id with the header " + s.UnsignedIDHeader + "."
	}
	return ""
}

// customID is the preset's event id, or what a route may write in its place.
func customID(s verify.Sender) []verify.IDSource {
	switch {
	case s.NoEventID != "":
		return []verify.IDSource{{Kind: verify.NoID}}
	case len(s.EventID) == 0:
		return []verify.IDSource{{Kind: verify.FromHeader, Name: s.Schemes[0].IDHeader}}
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
