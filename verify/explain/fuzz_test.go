package explain

import (
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// Not Explain itself, which tries thousands of signatures: what reads the
// delivery for it.
func FuzzReadingADeliveryNeverPanics(f *testing.F) {
	f.Add("X-Webhook-Signature", "t=1767225600,v1=00", "X-Id", "1", body)
	f.Add("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64), "Content-Length", "1", "{\"a\":\"\\ud83e\\uddfe\"}\n")
	f.Add("Svix-Signature", "v1,"+strings.Repeat("A", 43)+"= v1a,x", "Svix-Timestamp", "1767225600", "\xff\xfe")
	f.Add("A", "", "Content-Encoding", "gzip", "3\r\n{}\n\r\n0\r\n\r\n")
	f.Add("A", "x", "B", "y", `{"payload":"\u00e"`)
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2, b string) {
		h := http.Header{}
		h.Set(n1, v1)
		h.Add(n2, v2)
		in := Input{
			Config:  sender("paymos", secret),
			Request: &verify.Request{Method: "POST", URI: "/", Header: h, Body: []byte(b)},
			Now:     noon,
		}
		Clues(in)
		repairs(in)
		if string(in.Request.Body) != b {
			t.Error("the delivery was changed")
		}
	})
}
