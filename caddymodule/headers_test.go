package caddymodule

import (
	"net/http"
	"testing"
)

func TestOwnHeadersAreStrippedHoweverSpelled(t *testing.T) {
	for _, name := range []string{
		"Webhook-Dedupe", "webhook-dedupe", "WEBHOOK-DEDUPE", "Webhook_Dedupe", "webhook.dedupe", "Webhook Dedupe",
		"Webhook-Dedupe-Attempt", "Webhook_Dedupe_Anything", "webhook-dedupex",
	} {
		h := http.Header{name: {"first"}}
		stripOwnHeaders(h)
		if len(h) > 0 {
			t.Errorf("%q stayed", name)
		}
	}
}

func TestOtherHeadersStay(t *testing.T) {
	for _, name := range []string{"Webhook-Id", "Webhook-Dedup", "X-Webhook-Dedupe", "Webhook", "", "Content-Type", "Webhookxdedupe"} {
		h := http.Header{name: {"first"}}
		stripOwnHeaders(h)
		if len(h) != 1 {
			t.Errorf("%q was stripped", name)
		}
	}
}
