package verify

import (
	"encoding/json"
	"strings"
)

// samples are bodies in the shape of each sender's; ID stands for the event id
// where the sender puts it into the body.
var samples = map[string]string{
	"github":            `{"zen":"Keep it logically awesome.","hook_id":1,"repository":{"full_name":"octo/hello"}}`,
	"paymos":            `{"event_id":ID,"event_type":"invoice.paid","version":1,"occurred_at":1767225600,"data":{"invoice_id":"inv_1","amount":"10.00"}}`,
	"stableops":         `{"type":"payment.finalized","data":{"payment_order_id":"po_1","merchant_order_id":"m_1"}}`,
	"standard-webhooks": `{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c_1"}}`,
	"stripe":            `{"id":ID,"object":"event","type":"invoice.paid","data":{"object":{"id":"in_1","object":"invoice"}}}`,
	"svix":              `{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c_1"}}`,
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
