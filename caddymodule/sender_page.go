package caddymodule

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

//go:embed sender_page.md
var pageHead string

// sendersPage writes the page of all senders, in Markdown.
func sendersPage(out io.Writer) error {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("\n| name | sender | event id | signed | tries for | attempt |\n|---|---|---|---|---|---|\n")
	for _, s := range allFacts() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s | %s |\n", s.Name, s.Name, s.Title, idText(s), signedText(s), windowText(s), attemptText(s))
	}
	for _, s := range allFacts() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", s.Name, s.Title)
		for _, remark := range remarks(s) {
			fmt.Fprintf(&b, "- %s\n", remark)
		}
		fmt.Fprintf(&b, "- Sources: %s.\n", strings.Join(s.Sources, "; "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// remarks is all that is known of a sender, in sentences of Markdown.
func remarks(s verify.Sender) []string {
	r := append(signatureText(s), secretText(s), idRemark(s))
	if s.Tolerance > 0 {
		r = append(r, "The signed time may be "+span(s.Tolerance)+" off.")
	}
	if s.SignedOnce {
		r = append(r, "Every try carries the time of the first, so the tolerance must outlast the tries.")
	}
	if s.BodyChanges {
		r = append(r, "The body of a retry may differ from the first.")
	}
	r = append(r, triesText(s))
	if len(s.Success) > 0 {
		r = append(r, "It takes "+oneOfStatuses(s.Success)+" for success. If your application answers with another 2xx, it tries again, and is answered as for a duplicate.")
	}
	if d := s.Duplicate; d.Status != 0 {
		r = append(r, fmt.Sprintf("A duplicate is answered with %d and `%s`.", d.Status, d.Body))
	}
	if len(s.Handshakes) > 0 {
		r = append(r, "Its challenge to the URL (`handshake "+strings.Join(s.Handshakes, "`, `")+"`) is passed on to your application, which must answer it.")
	}
	return append(r, s.Notes...)
}

// signatureText says how each scheme signs.
func signatureText(s verify.Sender) (texts []string) {
	for _, scheme := range s.Schemes {
		if text := specialSignature(scheme); text != "" {
			texts = append(texts, "Signature: "+text+".")
			continue
		}
		value := scheme.Prefix + "<" + or(scheme.Encoding, verify.Hex) + ">"
		if len(scheme.Labels) > 0 {
			assign := "="
			if scheme.Separator == " " {
				assign = ","
			}
			if strings.HasSuffix(scheme.Prefix, "/") {
				assign = "/"
			}
			value = scheme.Labels[0] + assign + value
		}
		if f := scheme.Timestamp.Field; f != "" {
			value = f + "=<" + unitText(scheme.Timestamp.Unit) + ">" + or(scheme.Separator, ",") + value
		}
		text := fmt.Sprintf("Signature: `%s: %s`, %s of `%s`", scheme.Headers[0], value, algorithmText(scheme.Algorithm), or(scheme.Payload, "{body}"))
		switch t := scheme.Timestamp; {
		case t.Header != "":
			text += ", with the time (" + unitText(t.Unit) + ") in `" + t.Header + "`"
		case t.JSON != "":
			text += ", with the time (" + unitText(t.Unit) + ") in the body's `" + t.JSON + "`"
		}
		if len(scheme.Headers) > 1 {
			text += "; likewise `" + strings.Join(scheme.Headers[1:], "`, `") + "`"
		}
		texts = append(texts, text+".")
	}
	return slices.Compact(texts) // of a public and a private key
}

// specialSignature says how a scheme signs that has no template.
func specialSignature(s verify.Scheme) string {
	switch {
	case s.Algorithm == "token":
		return "none. The header `" + s.Headers[0] + "` holds the secret itself"
	case s.Form == "adyen":
		return "`additionalData.hmacSignature` in each item of the body (base64), HMAC-SHA256 of eight fields of the item with colons between them"
	case s.Form == "mailgun":
		return "`signature.signature` in the body (hex), HMAC-SHA256 of `signature.timestamp` and `signature.token`"
	case s.Form == "twilio":
		return "`" + s.Headers[0] + ": <base64>`, HMAC-SHA1 of the URL and the sorted parameters of the form"
	}
	return ""
}

func algorithmText(algorithm string) string {
	switch algorithm {
	case "ed25519":
		return "Ed25519"
	case "ecdsa_sha256":
		return "ECDSA (P-256, SHA-256)"
	}
	return "HMAC-" + strings.ToUpper(or(algorithm, verify.SHA256))
}

func unitText(unit string) string {
	switch unit {
	case verify.UnixMillis:
		return "unix milliseconds"
	case verify.RFC3339:
		return "RFC 3339"
	}
	return "unix seconds"
}

func secretText(s verify.Sender) string {
	if s.Authenticator != "" {
		return "No signature and no secret: a token proves who sends, and the route needs an `" + s.Authenticator + "` block."
	}
	text := map[string]string{
		verify.Text: "as text, exactly as shown", verify.Base64: "in base64, with or without `whsec_` in front", verify.Hex: "in hex",
	}[s.SecretFormat]
	if a := s.Schemes[0].Algorithm; a == "ed25519" || a == "ecdsa_sha256" {
		text = "the sender's public key, in " + s.SecretFormat
	}
	if signsURL(s) {
		text += "; the URL is signed as well, so the route needs `public_url`"
	}
	return "Secret: " + text + "."
}

func idRemark(s verify.Sender) string {
	if s.NoEventID != "" {
		return "Event id: **none**. " + s.NoEventID + " The route must say `event_id` with a choice of yours, or `event_id none` to verify and nothing more."
	}
	text := "Event id: " + idText(s)
	if s.IDSigned() {
		text += ", signed"
	} else {
		text += ", not signed"
	}
	switch guard := s.Tolerance != 0 && !s.IDSigned(); {
	case idCounts(s):
		text += ". By default the id alone counts (`on_reused_id duplicate`)"
	case s.IDReused:
		text += ". It may come again for another event, so by default another body is another event (`on_reused_id forward`)"
	default:
		text += ". By default another body is another event (`on_reused_id forward`)"
		if guard {
			text += ", and the same signed bytes under another id are refused (`replay_guard on`)"
		}
	}
	if s.IDChanges == verify.ChangesOnReplay {
		text += ". A delivery repeated by hand has a new id, and so is a new event"
	}
	return text + "."
}

func triesText(s verify.Sender) string {
	var text string
	switch {
	case s.RetryWindow == 0:
		text = "It never tries again by itself: an event in doubt stays so"
	case s.WindowAssumed:
		text = "How long it tries is **not published**; " + span(s.RetryWindow) + " is assumed"
	default:
		text = "It tries for " + span(s.RetryWindow)
	}
	attempt := "one attempt may take " + attemptText(s)
	if s.AttemptTimeout == 0 {
		attempt = "how long one attempt may take is not published"
	}
	ttl := usualTTL(s.RetryWindow + max(s.Tolerance, 0))
	return text + "; " + attempt + ". Defaults: `ttl " + span(ttl) + "`, `wait " + span(usualWait(s)) + "`."
}

// idText says where the event id is.
func idText(s verify.Sender) string {
	if s.NoEventID != "" {
		return "none"
	}
	var parts []string
	sources := s.EventID
	if len(sources) == 0 {
		for _, scheme := range s.Schemes {
			if part := "header `" + scheme.IDHeader + "`"; !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, " or ")
	}
	for _, id := range sources {
		switch id.Kind {
		case verify.FromJSON:
			parts = append(parts, "body `"+id.Name+"`")
		case verify.FromForm:
			parts = append(parts, "form parameter `"+id.Name+"`")
		case verify.FromBodySHA256:
			parts = append(parts, "the body's hash")
		default:
			parts = append(parts, id.Kind+" `"+id.Name+"`")
		}
	}
	return strings.Join(parts, " with ")
}

func signedText(s verify.Sender) string {
	switch {
	case s.NoEventID != "":
		return ""
	case s.IDSigned():
		return "yes"
	}
	return "no"
}

func windowText(s verify.Sender) string {
	switch {
	case s.RetryWindow == 0:
		return "never again"
	case s.WindowAssumed:
		return span(s.RetryWindow) + " (assumed)"
	}
	return span(s.RetryWindow)
}

func attemptText(s verify.Sender) string {
	if s.AttemptTimeout == 0 {
		return ""
	}
	return span(s.AttemptTimeout)
}

func oneOfStatuses(statuses []int) string {
	var texts []string
	for _, status := range slices.Sorted(slices.Values(statuses)) {
		texts = append(texts, strconv.Itoa(status))
	}
	if len(texts) == 1 {
		return "only " + texts[0]
	}
	return "only " + strings.Join(texts, " or ")
}
