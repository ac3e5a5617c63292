package verify

import "time"

// standardSenders are Standard Webhooks, and those who sign in its way.
func standardSenders() []Sender {
	return []Sender{
		{
			Name: "openai", Title: "OpenAI",
			Schemes:      []Scheme{standardWebhooks("webhook")},
			SecretFormat: Base64,
			Tolerance:    5 * time.Minute,
			RetryWindow:  3 * day,
			Notes:        []string{"The header `webhook-id` is the id; the member `id` of the body is another one."},
			Sources:      []string{"openai/openai-python: tests/lib/test_webhooks.py", "platform.openai.com/docs/guides/webhooks, retries (from memory)"},
		},
		{
			Name: "standard-webhooks", Title: "Standard Webhooks",
			Schemes:        []Scheme{standardWebhooks("webhook"), standardWebhooksPublic("whpk_"), standardWebhooksPublic("whsk_")},
			SecretFormat:   Base64,
			Tolerance:      5 * time.Minute,
			RetryWindow:    75*time.Hour + 35*time.Minute,
			AttemptTimeout: 15 * time.Second,
			Notes: []string{
				"For every sender that follows the specification. The window is the end of the schedule that it suggests, the time-out the lower end of its range: a sender may keep to others, so set `retry_window` to the sender's own.",
				"A delivery repeated by hand has the id of the first.",
				"A secret that begins with `whpk_` is the sender's public key, for signatures `v1a` (Ed25519). A private key, `whsk_`, is for tests.",
			},
			Sources: []string{"standard-webhooks/standard-webhooks: spec/standard-webhooks.md, libraries/go/webhook.go"},
		},
		{
			Name: "svix", Title: "Svix",
			Schemes:        []Scheme{standardWebhooks("svix"), standardWebhooks("webhook")},
			SecretFormat:   Base64,
			Tolerance:      5 * time.Minute,
			RetryWindow:    27*time.Hour + 35*time.Minute,
			AttemptTimeout: 15 * time.Second,
			Notes: []string{
				"For everybody who sends through Svix (Clerk, Resend, Brex and others), under its header names or the unbranded ones.",
				"A delivery resent or recovered by hand has the id of the first, at any time later: let `ttl` cover it.",
				"The receiver's answer header `webhook-delivery` steers Svix; it is passed on like every header.",
			},
			Sources: []string{"docs.svix.com/retries", "svix/svix-docs: content/receiving/verifying-payloads/how-manual.mdx", "resend.com/docs/webhooks/retries-and-replays"},
		},
	}
}

// standardWebhooksPublic is the asymmetric form of Standard Webhooks.
func standardWebhooksPublic(prefix string) Scheme {
	s := standardWebhooks("webhook")
	s.Labels, s.Algorithm, s.SecretPrefix = []string{"v1a"}, "ed25519", prefix
	return s
}
