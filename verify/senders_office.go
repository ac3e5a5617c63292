package verify

import (
	"strconv"
	"time"
)

// officeSenders are where people plan, write, sign and serve customers.
func officeSenders() []Sender {
	return []Sender{
		{
			Name: "asana", Title: "Asana",
			Schemes: signsBody("X-Hook-Signature", "", SHA256, Hex),
			NoEventID: "Asana sends no ids, and several events in one delivery. " +
				"`event_id body_sha256` takes equal bytes for copies, among them the heartbeats, which are all equal.",
			RetryWindow:    day,
			AttemptTimeout: 10 * time.Second,
			Success:        []int{200, 204},
			Handshakes:     []string{"asana"},
			Notes:          []string{"Asana hands over the secret in its challenge, once for each webhook: your application must keep it, and it must be put into the configuration before the first events come."},
			Sources:        []string{"developers.asana.com/docs/webhooks-guide"},
		},
		{
			Name: "box", Title: "Box (v2)",
			Schemes: []Scheme{{
				Headers: []string{"BOX-SIGNATURE-PRIMARY", "BOX-SIGNATURE-SECONDARY"}, Encoding: Base64,
				Payload: "{body}{timestamp}", Timestamp: Timestamp{Header: "BOX-DELIVERY-TIMESTAMP", Unit: RFC3339},
			}},
			EventID:       inBody("id"),
			Tolerance:     10 * time.Minute,
			RetryWindow:   3 * day,
			WindowAssumed: true,
			Notes: []string{
				"`BOX-DELIVERY-ID` is another for every attempt; `id` in the body stays.",
				"Name both keys as secrets: each has a header of its own, and either may match.",
			},
			Sources: []string{"developer.box.com/guides/webhooks/v2", "box/box-python-sdk: test/webhooks.py"},
		},
		{
			Name: "cal-com", Title: "Cal.com",
			Schemes: signsBody("X-Cal-Signature-256", "", SHA256, Hex),
			NoEventID: "Cal.com sends no id of the event. " +
				"`event_id json triggerEvent` with `event_id json payload.uid` takes each kind of event once for a booking, which loses the second rescheduling; `event_id body_sha256` takes equal bytes for copies.",
			RetryWindow:   day,
			WindowAssumed: true,
			Sources:       []string{"cal.com/docs, webhooks (from memory)"},
		},
		{
			Name: "calendly", Title: "Calendly",
			Schemes: signsField("Calendly-Webhook-Signature"),
			NoEventID: "Calendly sends no id of the event. " +
				"`event_id body_sha256` takes equal bytes for copies; `created_at` in the body is in microseconds.",
			Tolerance:      3 * time.Minute,
			RetryWindow:    day,
			AttemptTimeout: 15 * time.Second,
			Sources:        []string{"developer.calendly.com, webhook signatures and errors (from memory)"},
		},
		{
			Name: "docusign", Title: "DocuSign Connect",
			Schemes: []Scheme{{Headers: numbered("X-DocuSign-Signature-", 10), Encoding: Base64}},
			NoEventID: "DocuSign sends no id of the message, and a retry has another `retryCount` in its body, so that its bytes are no id either. " +
				"`event_id json event` with `event_id json data.envelopeId` takes each kind of event once for an envelope: right for envelope events, wrong for those of one of several recipients.",
			BodyChanges:    true,
			RetryWindow:    15 * day,
			AttemptTimeout: 100 * time.Second,
			Success:        []int{200},
			Notes:          []string{"There is a numbered header for each active key; the first ten are looked at."},
			Sources:        []string{"developers.docusign.com, Connect, HMAC and retries (from memory)"},
		},
		{
			Name: "dropbox", Title: "Dropbox",
			Schemes:        signsBody("X-Dropbox-Signature", "", SHA256, Hex),
			NoEventID:      "Dropbox only says whose files have changed, without an id: every change has the same bytes as the one before, and to drop copies would be to lose events. `event_id none` is the only right choice.",
			RetryWindow:    day,
			WindowAssumed:  true,
			AttemptTimeout: 10 * time.Second,
			Handshakes:     []string{"dropbox"},
			Notes:          []string{"The secret is the app's secret."},
			Sources:        []string{"dropbox/mdwebhook", "dropbox.com/developers/reference/webhooks (from memory)"},
		},
		{
			Name: "hubspot-v3", Title: "HubSpot (v3 signature)",
			Schemes: signsHeader("X-HubSpot-Signature-v3", "", Base64, "{method}{url}{body}{timestamp}",
				Timestamp{Header: "X-HubSpot-Request-Timestamp", Unit: UnixMillis}),
			EventID:        inBody("$[*].eventId", "$[*].subscriptionId", "$[*].portalId"),
			BodyChanges:    true,
			Tolerance:      5 * time.Minute,
			RetryWindow:    3 * day,
			AttemptTimeout: 5 * time.Second,
			Notes: []string{
				"The secret is the app's client secret. HubSpot signs the URL: write it as `public_url`. The older v1 and v2 signatures are plain hashes that can be forged by appending, and are not offered.",
				"A delivery carries up to 100 events, and a retry may hold others. HubSpot does not promise that `eventId` alone is unique, so the subscription and the account are part of the id. A busy account had better write all three and `event_id json $[*].occurredAt`, and `on_reused_id duplicate`.",
				"HubSpot does not try again after 400, 401, 403, 404 and 405: set `reject_status 503` if deliveries must survive a wrong secret.",
			},
			Sources: []string{"HubSpot/hubspot-api-python: hubspot/utils/signature.py, tests/spec/utils/test_signature.py", "community.hubspot.com 277558", "that eventId may not be unique (from memory)"},
		},
		{
			Name: "intercom", Title: "Intercom",
			Schemes:        signsBody("X-Hub-Signature", "sha1=", SHA1, Hex),
			EventID:        inBody("id"),
			BodyChanges:    true,
			RetryWindow:    time.Minute,
			AttemptTimeout: 5 * time.Second,
			Notes:          []string{"The secret is the app's client secret. The one retry, after a minute, has another `delivery_attempts` in its body."},
			Sources:        []string{"developers.intercom.com/docs/webhooks/webhook-notifications", "the number of retries (from memory)"},
		},
		{
			Name: "trello", Title: "Trello",
			Schemes:     []Scheme{{Headers: []string{"X-Trello-Webhook"}, Algorithm: SHA1, Encoding: Base64, Payload: "{body}{url}"}},
			EventID:     inBody("action.id"),
			RetryWindow: 210 * time.Second,
			Success:     []int{200},
			Handshakes:  []string{"trello"},
			Notes: []string{
				"The secret is the application's secret. Trello signs the callback URL as the webhook was made with: write the same as `public_url`.",
				"Three more tries, after 30, 60 and 120 seconds.",
			},
			Sources: []string{"developer.atlassian.com/cloud/trello/guides/rest-api/webhooks (from memory)"},
		},
		{
			Name: "typeform", Title: "Typeform",
			Schemes:        signsBody("Typeform-Signature", "sha256=", SHA256, Base64),
			EventID:        inBody("event_id"),
			RetryWindow:    10 * time.Hour,
			AttemptTimeout: 30 * time.Second,
			Notes:          []string{"429, 408, 503 and 423 are tried again every few minutes for 10 hours, other errors less often."},
			Sources:        []string{"hookdeck.com, guide to Typeform webhooks"},
		},
		{
			Name: "zendesk", Title: "Zendesk",
			Schemes: signsHeader("X-Zendesk-Webhook-Signature", "", Base64, "{timestamp}{body}",
				Timestamp{Header: "X-Zendesk-Webhook-Signature-Timestamp", Unit: RFC3339}),
			EventID:        inHeaders("X-Zendesk-Webhook-Invocation-Id"),
			Tolerance:      ToleranceOff,
			RetryWindow:    time.Hour,
			WindowAssumed:  true,
			AttemptTimeout: 12 * time.Second,
			Notes: []string{
				"The secret is used as text, though it looks like base64.",
				"Zendesk tries again after 409, after 429 and 503 with a `Retry-After` below 60 seconds, and after time-outs: few times, within minutes.",
				"Zendesk names no tolerance, so any age is accepted; set `tolerance` to bound it.",
			},
			Sources: []string{"hookdeck/webhook-skills: skills/zendesk-webhooks", "developer.zendesk.com/documentation/webhooks (from memory)"},
		},
	}
}

// numbered returns a header name with each number from 1 to n.
func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, prefix+strconv.Itoa(i+1))
	}
	return names
}
