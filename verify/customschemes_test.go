package verify

import "strings"

// customScheme is a sender written with the knobs that every route has.
type customScheme struct {
	Scheme
	format string
	id     []IDSource // nil: the sender has none that can be expressed
}

// beyondTheKnobs are vectors that need what no knob says.
var beyondTheKnobs = []string{"linear/sdk-run-stale"}

func paystackText(id string) string { return strings.Replace(id, ":", " ", 1) }

func inHeader(name string) []IDSource { return []IDSource{{FromHeader, name}} }

func inJSON(paths ...string) (ids []IDSource) {
	for _, p := range paths {
		ids = append(ids, IDSource{FromJSON, p})
	}
	return ids
}

// body is a scheme that signs the body alone.
func body(header, prefix, algorithm, encoding string, id []IDSource) customScheme {
	return customScheme{Scheme: Scheme{Headers: []string{header}, Prefix: prefix, Algorithm: algorithm, Encoding: encoding}, id: id}
}

// fields is a scheme with a labelled timestamp, like Stripe's.
func fields(header, field, label, unit string, id []IDSource) customScheme {
	s := timestamped(header)
	s.Labels, s.Timestamp = []string{label}, Timestamp{Field: field, Unit: unit}
	return customScheme{Scheme: s, id: id}
}

// clocked is a scheme with its timestamp in a header.
func clocked(header, prefix, encoding, timestamp, unit, payload string, id []IDSource) customScheme {
	return customScheme{Scheme: Scheme{
		Headers: []string{header}, Prefix: prefix, Encoding: encoding,
		Payload: payload, Timestamp: Timestamp{Header: timestamp, Unit: unit},
	}, id: id}
}

var customSchemes = map[string]customScheme{
	"adyen-banking":     {Scheme: Scheme{Headers: []string{"HmacSignature"}, Encoding: Base64}, format: Hex},
	"airwallex":         clocked("x-signature", "", Hex, "x-timestamp", UnixMillis, "{timestamp}{body}", inJSON("id")),
	"asana":             body("X-Hook-Signature", "", "", "", nil),
	"authorize-net":     body("X-ANET-Signature", "sha512=", SHA512, "", inJSON("notificationId")),
	"bitbucket":         body("X-Hub-Signature", "sha256=", "", "", inHeader("X-Request-UUID")),
	"cal-com":           body("X-Cal-Signature-256", "", "", "", nil),
	"calendly":          fields("Calendly-Webhook-Signature", "t", "v1", "", nil),
	"coinbase-commerce": body("X-CC-Webhook-Signature", "", "", "", inJSON("event.id")),
	"docusign": {Scheme: Scheme{
		Headers:  []string{"X-DocuSign-Signature-1", "X-DocuSign-Signature-2", "X-DocuSign-Signature-3"},
		Encoding: Base64,
	}},
	"dropbox":             body("X-Dropbox-Signature", "", "", "", nil),
	"elevenlabs":          fields("ElevenLabs-Signature", "t", "v0", "", nil),
	"generic-sha1-list":   body("X-Signature", "sha1=", SHA1, "", nil),
	"generic-sha256-list": body("X-Signature", "sha256=", "", "", nil),
	"generic-sha512-list": body("X-Signature", "sha512=", SHA512, "", nil),
	"gitea":               body("X-Gitea-Signature", "", "", "", inHeader("X-Gitea-Delivery")),
	"github-sha1":         body("X-Hub-Signature", "sha1=", SHA1, "", inHeader("X-GitHub-Delivery")),
	"gocardless":          body("Webhook-Signature", "", "", "", inJSON("meta.webhook_id")),
	"hubspot-v3": clocked("X-HubSpot-Signature-v3", "", Base64, "X-HubSpot-Request-Timestamp", UnixMillis,
		"{method}{url}{body}{timestamp}", nil),
	"intercom":      body("X-Hub-Signature", "sha1=", SHA1, "", inJSON("id")),
	"lemon-squeezy": body("X-Signature", "", "", "", nil),
	"line":          body("x-line-signature", "", "", Base64, nil),
	"linear":        body("Linear-Signature", "", "", "", inHeader("Linear-Delivery")),
	"meta":          body("X-Hub-Signature-256", "sha256=", "", "", nil),
	"mollie-next":   body("X-Mollie-Signature", "sha256=", "", "", inJSON("id")),
	"mux":           fields("Mux-Signature", "t", "v1", "", inJSON("id")),
	"paddle": {Scheme: Scheme{
		Headers: []string{"Paddle-Signature"}, Separator: ";", Labels: []string{"h1"},
		Payload: "{timestamp}:{body}", Timestamp: Timestamp{Field: "ts"},
	}, id: inJSON("event_id")},
	"pagerduty": {Scheme: Scheme{Headers: []string{"X-PagerDuty-Signature"}, Labels: []string{"v1"}}, id: inJSON("event.id")},
	"circleci":  {Scheme: Scheme{Headers: []string{"circleci-signature"}, Labels: []string{"v1"}}, id: inJSON("id")},
	"paystack":  body("x-paystack-signature", "", SHA512, "", inJSON("event", "data.id")),
	"pusher":    body("X-Pusher-Signature", "", "", "", nil),
	"razorpay":  body("X-Razorpay-Signature", "", "", "", inHeader("x-razorpay-event-id")),
	"sanity": {Scheme: Scheme{
		Headers: []string{"sanity-webhook-signature"}, Labels: []string{"v1"}, Encoding: Base64URL,
		Payload: "{timestamp}.{body}", Timestamp: Timestamp{Field: "t", Unit: UnixMillis},
	}, id: inHeader("idempotency-key")},
	"sentry":          body("Sentry-Hook-Signature", "", "", "", inHeader("Request-ID")),
	"shopify":         body("X-Shopify-Hmac-Sha256", "", "", Base64, inHeader("X-Shopify-Event-Id")),
	"slack":           clocked("X-Slack-Signature", "v0=", Hex, "X-Slack-Request-Timestamp", "", "v0:{timestamp}:{body}", inJSON("event_id")),
	"square":          {Scheme: Scheme{Headers: []string{"x-square-hmacsha256-signature"}, Encoding: Base64, Payload: "{url}{body}"}, id: inJSON("event_id")},
	"terraform-cloud": body("X-TFE-Notification-Signature", "", SHA512, "", nil),
	"trello": {Scheme: Scheme{
		Headers: []string{"X-Trello-Webhook"}, Algorithm: SHA1, Encoding: Base64, Payload: "{body}{url}",
	}, id: inJSON("action.id")},
	"typeform":    body("Typeform-Signature", "sha256=", "", Base64, inJSON("event_id")),
	"vercel":      body("x-vercel-signature", "", SHA1, "", inJSON("id")),
	"woocommerce": body("X-WC-Webhook-Signature", "", "", Base64, inHeader("X-WC-Webhook-Delivery-ID")),
	"workos":      fields("WorkOS-Signature", "t", "v1", UnixMillis, inJSON("id")),
	"worldpay": {Scheme: Scheme{
		Headers: []string{"Event-Signature"}, Labels: []string{"1", "2"}, Prefix: "SHA256/",
	}, id: inJSON("eventId")},
	"x-twitter": body("X-Twitter-Webhooks-Signature", "sha256=", "", Base64, nil),
	"xero":      body("x-xero-signature", "", "", Base64, nil),
	"zendesk": clocked("X-Zendesk-Webhook-Signature", "", Base64, "X-Zendesk-Webhook-Signature-Timestamp", RFC3339,
		"{timestamp}{body}", inHeader("X-Zendesk-Webhook-Invocation-Id")),
	"zoom": clocked("x-zm-signature", "v0=", Hex, "x-zm-request-timestamp", "", "v0:{timestamp}:{body}", nil),
	"box": {Scheme: Scheme{
		Headers: []string{"BOX-SIGNATURE-PRIMARY", "BOX-SIGNATURE-SECONDARY"}, Encoding: Base64,
		Payload: "{body}{timestamp}", Timestamp: Timestamp{Header: "BOX-DELIVERY-TIMESTAMP", Unit: RFC3339},
	}, id: inJSON("id")},
}
