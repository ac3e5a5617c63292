package verify

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// samples are bodies in the shape of each sender's; ID stands for the event id
// where the sender puts it into the body.
var samples = map[string]string{
	"adyen-banking": `{"type":"merchant.created","environment":"test","data":{"merchantId":ID}}`,
	"adyen": `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":ID,"eventCode":"AUTHORISATION","success":"true",` +
		`"merchantAccountCode":"M1","merchantReference":"order-1","amount":{"currency":"EUR","value":1130},"additionalData":{"hmacSignature":""}}}]}`,
	"discord":  `{"id":ID,"type":2,"application_id":"1","token":"t","data":{"name":"hello","type":1}}`,
	"gitlab":   `{"object_kind":"push","ref":"refs/heads/main","after":ID,"project":{"path_with_namespace":"octo/hello"}}`,
	"mailgun":  `{"signature":{},"event-data":{"id":ID,"event":"delivered","recipient":"alice@example.com"}}`,
	"sendgrid": `[{"sg_event_id":ID,"event":"delivered","email":"alice@example.com","timestamp":1767225600}]`,
	"telegram": `{"update_id":ID,"message":{"message_id":1,"text":"hi"}}`,
	"telnyx":   `{"data":{"id":ID,"event_type":"message.received","record_type":"event","payload":{"text":"hi"}},"meta":{"attempt":1}}`,
	"twilio":   `AccountSid=AC1&Body=hi&From=%2B14155550100&MessageSid=ID&MessageStatus=delivered`,

	"airwallex":         `{"id":ID,"name":"payment_intent.succeeded","data":{}}`,
	"asana":             `{"events":[{"action":"changed","resource":{"gid":ID,"resource_type":"task"}}]}`,
	"authorize-net":     `{"notificationId":ID,"eventType":"net.authorize.payment.authcapture.created"}`,
	"bitbucket":         `{"push":{"changes":[]},"repository":{"full_name":"octo/hello"}}`,
	"box":               `{"type":"webhook_event","id":ID,"trigger":"FILE.UPLOADED","source":{"id":"1","type":"file"}}`,
	"cal-com":           `{"triggerEvent":"BOOKING_CREATED","createdAt":"2026-01-01T00:00:00.000Z","payload":{"uid":ID}}`,
	"calendly":          `{"event":"invitee.created","created_at":"2026-01-01T00:00:00.000000Z","payload":{"uri":ID}}`,
	"circleci":          `{"type":"workflow-completed","id":ID,"workflow":{"status":"success"}}`,
	"coinbase-commerce": `{"id":1,"attempt_number":1,"event":{"id":ID,"type":"charge:created","data":{}}}`,
	"docusign":          `{"event":"envelope-completed","apiVersion":"v2.1","retryCount":0,"data":{"envelopeId":ID}}`,
	"dropbox":           `{"list_folder":{"accounts":[ID]},"delta":{"users":[1]}}`,
	"elevenlabs":        `{"type":"post_call_transcription","event_timestamp":1767225600,"data":{"conversation_id":ID}}`,
	"gitea":             `{"ref":"refs/heads/main","before":"28e1879d","after":"bffeb742"}`,
	"github":            `{"zen":"Keep it logically awesome.","hook_id":1,"repository":{"full_name":"octo/hello"}}`,
	"github-sha1":       `{"zen":"Keep it logically awesome.","hook_id":1,"repository":{"full_name":"octo/hello"}}`,
	"gocardless":        `{"events":[{"id":ID,"resource_type":"payments","action":"confirmed"}],"meta":{"webhook_id":"WB1"}}`,
	"google-pubsub":     `{"message":{"attributes":{"key":"value"},"data":"SGVsbG8=","messageId":ID,"publishTime":"2026-01-01T00:00:00Z"},"subscription":"projects/p/subscriptions/s"}`,
	"hubspot-v3":        `[{"eventId":ID,"subscriptionId":1,"portalId":62515,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123}]`,
	"intercom":          `{"type":"notification_event","id":ID,"topic":"user.created","delivery_attempts":1}`,
	"lemon-squeezy":     `{"meta":{"event_name":"order_created","webhook_id":"w1"},"data":{"type":"orders","id":ID}}`,
	"line":              `{"destination":"U1","events":[{"type":"message","webhookEventId":ID,"deliveryContext":{"isRedelivery":false}}]}`,
	"linear":            `{"action":"create","type":"Issue","data":{"id":ID},"webhookTimestamp":1767225600000,"webhookId":"w_1"}`,
	"meta":              `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[{"id":ID}]}}]}]}`,
	"mollie-next":       `{"resource":"event","id":ID,"type":"payment-link.paid","entityId":"pl_1"}`,
	"mux":               `{"type":"video.asset.ready","id":ID,"data":{}}`,
	"openai":            `{"id":"evt_1","object":"event","type":"response.completed","data":{"id":"resp_1"}}`,
	"paddle":            `{"event_id":ID,"event_type":"transaction.completed","notification_id":"ntf_1","data":{"id":"txn_1"}}`,
	"pagerduty":         `{"event":{"id":ID,"event_type":"incident.triggered","resource_type":"incident","data":{"id":"P1"}}}`,
	"paymos":            `{"event_id":ID,"event_type":"invoice.paid","version":1,"occurred_at":1767225600,"data":{"invoice_id":"inv_1","amount":"10.00"}}`,
	"paystack":          `{"event":"charge.success","data":{"id":ID,"status":"success"}}`,
	"pusher":            `{"time_ms":1767225600000,"events":[{"name":"channel_occupied","channel":ID}]}`,
	"razorpay":          `{"entity":"event","event":"payment.captured","contains":["payment"],"payload":{}}`,
	"sanity":            `{"_id":ID,"_type":"document"}`,
	"sentry":            `{"action":"created","data":{"issue":{"id":"1"}}}`,
	"shopify":           `{"id":820982911946154508,"total_price":"10.00"}`,
	"slack":             `{"type":"event_callback","event_id":ID,"event_time":1767225600,"team_id":"T1","event":{"type":"app_mention","text":"hi"}}`,
	"square":            `{"merchant_id":"M1","type":"payment.updated","event_id":ID,"data":{"type":"payment","id":"p_1"}}`,
	"stableops":         `{"type":"payment.finalized","data":{"payment_order_id":"po_1","merchant_order_id":ID}}`,
	"standard-webhooks": `{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c_1"}}`,
	"stripe":            `{"id":ID,"object":"event","type":"invoice.paid","data":{"object":{"id":"in_1","object":"invoice"}}}`,
	"svix":              `{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c_1"}}`,
	"terraform-cloud":   `{"payload_version":1,"run_id":ID,"notifications":[{"trigger":"run:completed"}]}`,
	"trello":            `{"action":{"id":ID,"type":"updateCard"},"model":{"id":"m_1"}}`,
	"typeform":          `{"event_id":ID,"event_type":"form_response","form_response":{"form_id":"lT4Z3j"}}`,
	"vercel":            `{"id":ID,"type":"deployment.created","createdAt":1767225600000,"payload":{}}`,
	"woocommerce":       `{"id":727,"status":"processing","total":"10.00"}`,
	"workos":            `{"id":ID,"event":"user.created","data":{}}`,
	"worldpay":          `{"eventId":ID,"eventTimestamp":"2026-01-01T00:00:00.000","eventDetails":{"type":"sentForSettlement"}}`,
	"x-twitter":         `{"for_user_id":"1","tweet_create_events":[{"id_str":ID}]}`,
	"xero":              `{"events":[{"resourceId":ID,"eventDateUtc":"2026-01-01T00:00:00.123","eventType":"UPDATE","eventCategory":"INVOICE"}],"firstEventSequence":1,"lastEventSequence":1,"entropy":"x"}`,
	"zendesk":           `{"ticket_event":{"ticket_id":ID}}`,
	"zoom":              `{"event":"meeting.started","event_ts":1767225600123,"payload":{"object":{"id":"1","uuid":ID}}}`,
}

// SampleBody returns a small body such as the sender's, with the event id at the
// place where the sender has it, if that is the body. Most are JSON. For a sender
// that is not known the id is the member "id". It is for tests and
// demonstrations; [Verifier.SignBody] completes it.
func SampleBody(sender, eventID string) []byte {
	body, ok := samples[sender]
	if !ok {
		body = `{"id":ID,"type":"test"}`
	}
	id, _ := json.Marshal(eventID) // a string always marshals
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		return []byte(strings.Replace(body, "ID", string(id), 1))
	}
	return []byte(strings.Replace(body, "=ID&", "="+url.QueryEscape(eventID)+"&", 1))
}

// SampleSecret returns a secret in the sender's form, with which deliveries can
// be signed: of public keys the private one. It is for tests and demonstrations,
// and known to everybody.
func SampleSecret(sender string) string {
	s, ok := SenderNamed(sender)
	if !ok || len(s.Schemes) == 0 {
		return sampleText
	}
	switch s.Schemes[0].Algorithm {
	case "ed25519":
		key, _ := base64.StdEncoding.DecodeString(sampleEd25519)
		return encodeDigest(encodings[s.SecretFormat], key)
	case "ecdsa_sha256":
		return sampleECDSA
	}
	if s.SecretFormat == Hex {
		return "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	}
	return sampleText
}

const (
	// sampleText is in the form of Standard Webhooks.
	sampleText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	// sampleEd25519 is of RFC 8032, section 7.1, test 1.
	sampleEd25519 = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="
	// sampleECDSA was made for this purpose.
	sampleECDSA = "MHcCAQEEIEpCtTzMalIpEKJymVaD9k4miz9RS8nLhn7CT0ygqG0hoAoGCCqGSM49AwEHoUQDQgAEhtrfuEQvW/KU43Q4GZVOtivAFgZRXkggHSKMkYGZ1b9yAF2Iwa5uM8x3O+Nit11tHcOjgk0SLHDMeCdfb25nMg=="
)
