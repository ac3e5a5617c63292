package verify

import "time"

// messageSenders carry messages, calls and posts.
func messageSenders() []Sender {
	return []Sender{
		{
			Name: "elevenlabs", Title: "ElevenLabs",
			Schemes:       signsFieldAs("ElevenLabs-Signature", "v0", UnixSeconds),
			NoEventID:     "ElevenLabs sends no id of the event. `event_id json type` with `event_id json data.conversation_id` takes each kind of event once for a conversation.",
			Tolerance:     30 * time.Minute,
			RetryWindow:   day,
			WindowAssumed: true,
			Success:       []int{200},
			Sources:       []string{"elevenlabs/elevenlabs-python: tests/test_webhooks.py"},
		},
		{
			Name: "line", Title: "LINE",
			Schemes:       signsBody("x-line-signature", "", SHA256, Base64),
			EventID:       inBody("events[*].webhookEventId"),
			BodyChanges:   true,
			RetryWindow:   day,
			WindowAssumed: true,
			Success:       []int{200},
			Handshakes:    []string{"line"},
			Notes:         []string{"LINE sends again only where redelivery is switched on; `deliveryContext.isRedelivery` is true then."},
			Sources:       []string{"line/line-bot-sdk-python: tests/v3/test_webhook.py", "line/line-bot-sdk-nodejs", "developers.line.biz, redelivery (from memory)"},
		},
		{
			Name: "meta", Title: "Meta (Facebook, Instagram, WhatsApp)",
			Schemes: signsBody("X-Hub-Signature-256", "sha256=", SHA256, Hex),
			NoEventID: "Meta sends no id of a delivery, and up to 1000 changes in one, which need not be the same ones when it tries again. " +
				"`event_id body_sha256` takes equal bytes for copies.",
			RetryWindow: 7 * day,
			Success:     []int{200},
			Handshakes:  []string{"meta"},
			Notes: []string{
				"The secret is the app's secret. The signature is over the bytes as sent, with escaped Unicode.",
				"WhatsApp's messages have an id, `entry[].changes[].value.messages[].id`: let your application take each once.",
				"Meta tries for 36 hours, WhatsApp for up to 7 days.",
			},
			Sources: []string{"developers.facebook.com, webhooks, getting started; retries and batches (from memory)"},
		},
		{
			Name: "slack", Title: "Slack (Events API)",
			Schemes:        signsHeader("X-Slack-Signature", "v0=", Hex, "v0:{timestamp}:{body}", Timestamp{Header: "X-Slack-Request-Timestamp"}),
			EventID:        inBody("event_id"),
			Tolerance:      5 * time.Minute,
			RetryWindow:    6 * time.Minute,
			AttemptTimeout: 3 * time.Second,
			Handshakes:     []string{"slack"},
			Notes: []string{
				"Slack gives up after 3 seconds and tries again at once, while the first delivery is still under way: the copy waits for it, and gets the duplicate answer or 503.",
				"Slash commands and interactive requests are forms without an id, and are never sent again: give them a route of their own with `event_id none`.",
			},
			Sources: []string{"docs.slack.dev, verifying requests; the Events API, retries", "slackapi/python-slack-sdk: tests/slack_sdk/signature"},
		},
		{
			Name: "x-twitter", Title: "X (Twitter)",
			Schemes: signsBody("X-Twitter-Webhooks-Signature", "sha256=", SHA256, Base64),
			NoEventID: "X sends no id of a delivery, and several events in one. " +
				"`event_id body_sha256` takes equal bytes for copies.",
			RetryWindow:    5 * time.Minute,
			AttemptTimeout: 3 * time.Second,
			Success:        []int{200},
			Handshakes:     []string{"x-twitter"},
			Notes:          []string{"The secret is the app's consumer secret. X repeats its challenge every hour."},
			Sources:        []string{"developer.x.com, Account Activity API, securing webhooks and retries"},
		},
		{
			Name: "zoom", Title: "Zoom",
			Schemes: signsHeader("x-zm-signature", "v0=", Hex, "v0:{timestamp}:{body}", Timestamp{Header: "x-zm-request-timestamp"}),
			NoEventID: "Zoom sends no id of the event. " +
				"`event_id body_sha256` takes equal bytes for copies; `event_ts` in the body is in milliseconds.",
			Tolerance:      5 * time.Minute,
			RetryWindow:    85 * time.Minute,
			AttemptTimeout: 3 * time.Second,
			Success:        []int{200, 204},
			Handshakes:     []string{"zoom"},
			Notes:          []string{"The secret is the app's secret token. Zoom repeats its challenge about every 72 hours."},
			Sources:        []string{"zoom/webhook-sample: index.js", "developers.zoom.us/blog/webhook-delays", "the tolerance (from memory)"},
		},
	}
}
