package verify

import "time"

// specialSenders are those whose deliveries are proved by something else than an
// HMAC of a template in a header.
func specialSenders() []Sender {
	return []Sender{
		{
			Name: "adyen", Title: "Adyen (payments)",
			Schemes:      []Scheme{{Form: "adyen", Encoding: Base64}},
			SecretFormat: Hex,
			EventID: inBody(
				"notificationItems[*].NotificationRequestItem.pspReference",
				"notificationItems[*].NotificationRequestItem.eventCode",
			),
			RetryWindow:    30 * day,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"Signed are eight fields of each item (`pspReference`, `originalReference`, `merchantAccountCode`, `merchantReference`, the amount's value and currency, `eventCode`, `success`), **and nothing else of the body**: take what you act on from these, or ask Adyen's API.",
				"All items of a notification must be signed right, or none is let through. An item is refused if a signed field but `merchantReference` holds a colon, which Adyen's libraries let pass: the fields are signed with colons between them, so that it could be another notification's signature.",
				"Adyen calls two notifications with one `pspReference` and `eventCode` the same event, and asks to take its other fields from the newer one; the gateway drops the newer one.",
				"A notification that is not accepted holds up those behind it.",
				"Older accounts want the answer `[accepted]`: write `duplicate 200 \"[accepted]\"`, and `success 200 body_prefix [accepted]` where the application reports errors with 200.",
			},
			Sources: []string{
				"https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
				"https://docs.adyen.com/development-resources/webhooks/troubleshoot",
				"Adyen/adyen-python-api-library: Adyen/util.py",
			},
		},
		{
			Name: "discord", Title: "Discord (interactions)",
			Schemes: []Scheme{{
				Headers: []string{"X-Signature-Ed25519"}, Algorithm: "ed25519",
				Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-Signature-Timestamp"},
			}},
			SecretFormat:   Hex,
			EventID:        inBody("id"),
			Tolerance:      5 * time.Minute,
			AttemptTimeout: 3 * time.Second,
			Handshakes:     []string{"discord"},
			Notes: []string{
				"The secret is the application's public key, in hex.",
				"Discord's libraries accept a timestamp of any age; the gateway accepts 5 minutes, and any age with `tolerance off`.",
				"Discord now and then sends a wrong signature on purpose, and wants 401 for it.",
				"Interactions are not sent again. Webhook events, which are (for 10 minutes), have no id: write `event_id body_sha256` for them.",
				"The answer to an interaction is what the user sees: a copy gets the duplicate answer and not that one.",
			},
			Sources: []string{
				"https://docs.discord.com/developers/interactions/overview (from memory)",
				"https://docs.discord.com/developers/events/webhook-events (from memory)",
				"discord/discord-interactions-js: src/index.ts",
			},
		},
		{
			Name: "gitlab", Title: "GitLab",
			Schemes: []Scheme{
				gitlabSigned(),
				{Headers: []string{"X-Gitlab-Token"}, Algorithm: "token", IDHeader: "Idempotency-Key"},
			},
			Tolerance:      5 * time.Minute,
			RetryWindow:    48 * time.Hour,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"A secret that begins with `whsec_` is a signing token, with a key in base64 behind that; any other is a secret token. **A secret token signs nothing**: whoever sees one delivery can make others. Prefer a signing token; the route may have both while you move over.",
				"GitLab does not try again by itself. A request can be resent by hand from the history of the last two days; it keeps its id.",
				"`Idempotency-Key` is sent since GitLab 17.4.",
				"After 4 failures in a row GitLab suspends the webhook, for longer each time.",
			},
			Sources: []string{
				"https://docs.gitlab.com/user/project/integrations/webhooks/",
				"https://gitlab.com/gitlab-org/gitlab/-/merge_requests/230944",
				"https://gitlab.com/gitlab-org/gitlab/-/merge_requests/160952",
			},
		},
		{
			Name: "mailgun", Title: "Mailgun",
			Schemes: []Scheme{{
				Form: "mailgun", Timestamp: Timestamp{JSON: "signature.timestamp"},
			}},
			EventID:     inBody("event-data.id"),
			Tolerance:   9 * time.Hour,
			SignedOnce:  true,
			BodyChanges: true,
			RetryWindow: 8*time.Hour + 5*time.Minute,
			Success:     []int{200},
			Notes: []string{
				"Signed are a timestamp and a token, **and nothing of the event**: whoever sees one delivery can send another body with its signature. So each token is bound to the first body that came with it: another body gets 503 and reaches nothing, a copy is taken as one.",
				"The secret is the HTTP webhook signing key. For events of subaccounts that of the main account works too.",
				"Retries are said to carry the signature of the first attempt, so the tolerance outlasts them. Mailgun does not say it: if they are signed anew, the id alone counts.",
				"Any answer but 200 and 406 is tried again; 406 means never.",
			},
			Sources: []string{
				"https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
				"https://help.mailgun.com/hc/en-us/articles/202236504-Webhooks",
				"PostHog/posthog#103057 (retries keep the signature)",
			},
		},
		{
			Name: "sendgrid", Title: "Twilio SendGrid (event webhook)",
			Schemes: []Scheme{{
				Headers: []string{"X-Twilio-Email-Event-Webhook-Signature"}, Algorithm: "ecdsa_sha256", Encoding: Base64,
				Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-Twilio-Email-Event-Webhook-Timestamp"},
			}},
			SecretFormat:   Base64,
			EventID:        inBody("$[*].sg_event_id"),
			Tolerance:      25 * time.Hour,
			SignedOnce:     true,
			RetryWindow:    24 * time.Hour,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"The secret is the verification key of the signed event webhook: a public key, which begins with `MFkw`.",
				"SendGrid does not say whether retries are signed anew, so the tolerance outlasts the 24 hours of them. Its libraries accept any age.",
				"One delivery carries many events, each with an id of its own.",
			},
			Sources: []string{
				"https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
				"https://docs.sendgrid.com/for-developers/tracking-events/troubleshooting",
				"sendgrid/sendgrid-nodejs: packages/eventwebhook/src/eventwebhook.js",
				"https://hookdeck.com/webhooks/platforms/guide-to-sendgrid-webhooks-features-and-best-practices (time-out)",
			},
		},
		{
			Name: "telegram", Title: "Telegram (bots)",
			Schemes:       []Scheme{{Headers: []string{"X-Telegram-Bot-Api-Secret-Token"}, Algorithm: "token"}},
			EventID:       inBody("update_id"),
			RetryWindow:   24 * time.Hour,
			WindowAssumed: true,
			Notes: []string{
				"The secret is the `secret_token` of `setWebhook`. **It signs nothing**: whoever sees one delivery can make others.",
				"Telegram tries again for \"a reasonable amount of attempts\" and keeps updates for 24 hours.",
				"Your application may answer with a method call. A copy gets the duplicate answer, and no call.",
			},
			Sources: []string{"https://core.telegram.org/bots/api#setwebhook"},
		},
		{
			Name: "telnyx", Title: "Telnyx (API v2)",
			Schemes: []Scheme{{
				Headers: []string{"telnyx-signature-ed25519"}, Algorithm: "ed25519", Encoding: Base64,
				Payload: "{timestamp}|{body}", Timestamp: Timestamp{Header: "telnyx-timestamp"},
			}},
			SecretFormat:  Base64,
			EventID:       inBody("data.id"),
			Tolerance:     5 * time.Minute,
			BodyChanges:   true,
			RetryWindow:   time.Hour,
			WindowAssumed: true,
			Notes: []string{
				"The secret is the account's public key, in base64.",
				"The body counts the attempts (`meta.attempt`) and names the URL, so a retry has another body.",
				"After the primary URL Telnyx tries the failover URL; give both the same `source`. Schedules differ between products and are not published for all.",
			},
			Sources: []string{
				"https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks",
				"https://developers.telnyx.com/docs/development/api-fundamentals/webhooks",
				"team-telnyx/telnyx-python#242",
			},
		},
		{
			Name: "twilio", Title: "Twilio",
			Schemes: []Scheme{{
				Headers: []string{"X-Twilio-Signature"}, Form: "twilio", Algorithm: SHA1, Encoding: Base64,
			}},
			EventID:        []IDSource{{FromForm, "MessageSid"}},
			IDReused:       true,
			RetryWindow:    15 * time.Second,
			AttemptTimeout: 15 * time.Second,
			Notes: []string{
				"Signed are the URL (`public_url`, with or without its port) and the parameters of the form, sorted. Other bodies are signed by their hash in the query (`bodySHA256`).",
				"One `MessageSid` comes with a callback for each status: another form under it is another event. The order of the parameters makes no difference.",
				"For calls write `event_id form CallSid`; but one call may send the same form again and mean it, and waits for TwiML, which a duplicate answer is not. `event_id none` verifies and drops nothing. For JSON, name the id's place.",
				"Twilio tries again only when the connection fails, once, and all within 15 seconds; `#rc=` in the URL changes it.",
			},
			Sources: []string{
				"twilio/twilio-node: src/webhooks/webhooks.ts",
				"twilio/twilio-python: twilio/request_validator.py",
				"https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides",
			},
		},
	}
}

// gitlabSigned is GitLab's scheme with a signing token: Standard Webhooks.
func gitlabSigned() Scheme {
	s := standardWebhooks("webhook")
	s.SecretPrefix, s.SecretFormat = "whsec_", Base64
	return s
}
