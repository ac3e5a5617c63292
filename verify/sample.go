package verify

import (
	"encoding/json"
	"strings"
)

// samples are bodies in the shape of each sender's; ID stands for the event id
// where the sender puts it into the body.
var samples = map[string]string{
	"adyen-banking":     `{"type":"merchant.created","environment":"test","data":{"merchantId":ID}}`,
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
	"linear":            `{"action":"create","type":"Issue","data":{"id":"i_1"},"webhookTimestamp":1767225600000,"webhookId":"w_1"}`,
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
	"sanity":            `{"_id":"resume","_type":"document"}`,
	"sentry":            `{"action":"created","data":{"issue":{"id":"1"}}}`,
	"shopify":           `{"id":820982911946154508,"total_price":"10.00"}`,
	"slack":             `{"type":"event_callback","event_id":ID,"event_time":1767225600,"team_id":"T1","event":{"type":"app_mention","text":"hi"}}`,
	"square":            `{"merchant_id":"M1","type":"payment.updated","event_id":ID,"data":{"type":"payment","id":"p_1"}}`,
	"stableops":         `{"type":"payment.finalized","data":{"payment_order_id":"po_1","merchant_order_id":"m_1"}}`,
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
	"zendesk":           `{"ticket_event":{"ticket_id":1}}`,
	"zoom":              `{"event":"meeting.started","event_ts":1767225600123,"payload":{"object":{"id":"1","uuid":ID}}}`,
}

// SampleBody returns a small JSON body such as the sender's, with the event id
// at the place where the sender has it, if that is the body. For a sender that
// is not known the id is the member "id". It is for tests and demonstrations.
func SampleBody(sender, eventID string) []byte {
	body, ok := samples[sender]
	if !ok {
		body = `{"id":ID,"type":"test"}`
	}
	id, _ := json.Marshal(eventID) // a string always marshals
	return []byte(strings.Replace(body, "ID", string(id), 1))
}
