package verify

import "time"

// developerSenders host, build and watch over software.
func developerSenders() []Sender {
	return []Sender{
		{
			Name: "bitbucket", Title: "Bitbucket",
			Schemes:        signsBody("X-Hub-Signature", "sha256=", SHA256, Hex),
			EventID:        inHeaders("X-Request-UUID"),
			RetryWindow:    day,
			WindowAssumed:  true,
			AttemptTimeout: 10 * time.Second,
			Notes:          []string{"Two more tries after a 5xx or a time-out, counted in `X-Attempt-Number`."},
			Sources: []string{
				"hookdeck/webhook-skills: skills/bitbucket-webhooks/references/verification.md",
				"support.atlassian.com, event payloads, id and retries (from memory)",
			},
		},
		{
			Name: "circleci", Title: "CircleCI",
			Schemes:        []Scheme{{Headers: []string{"circleci-signature"}, Labels: []string{"v1"}}},
			EventID:        inBody("id"),
			RetryWindow:    day,
			WindowAssumed:  true,
			AttemptTimeout: 10 * time.Second,
			Sources:        []string{"circleci/circleci-docs: outbound-webhooks.adoc"},
		},
		{
			Name: "gitea", Title: "Gitea and Forgejo",
			Schemes: signsBody("X-Gitea-Signature", "", SHA256, Hex),
			EventID: inHeaders("X-Gitea-Delivery"),
			Notes:   []string{"Gitea does not try again by itself. A redelivery by hand is an event of its own if it has a new id."},
			Sources: []string{"go-playground/webhooks: gitea", "docs.gitea.com, webhooks (from memory)"},
		},
		{
			Name: "github", Title: "GitHub",
			Schemes:        signsBody("X-Hub-Signature-256", "sha256=", SHA256, Hex),
			EventID:        inHeaders("X-GitHub-Delivery"),
			RetryWindow:    3 * day,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"GitHub never tries again by itself; a delivery can be redelivered by hand for 3 days, under its first id. So an event that failed passes when it is redelivered, and one that was accepted is a duplicate.",
				"GitHub signs neither the id nor a time. Whoever holds an old delivery can send it again under a new id, and no gateway can tell.",
				"Two apps or hooks on one event have the same id: give their routes a `source` each.",
			},
			Sources: []string{"github/docs: validating-webhook-deliveries.md, best-practices-for-using-webhooks.md"},
		},
		{
			Name: "github-sha1", Title: "GitHub (old signature)",
			Schemes:        signsBody("X-Hub-Signature", "sha1=", SHA1, Hex),
			EventID:        inHeaders("X-GitHub-Delivery"),
			RetryWindow:    3 * day,
			AttemptTimeout: 10 * time.Second,
			Notes:          []string{"Only for servers so old that they do not send `X-Hub-Signature-256`; use `github` for all others."},
			Sources:        []string{"github/docs: validating-webhook-deliveries.md"},
		},
		{
			Name: "linear", Title: "Linear",
			Schemes: []Scheme{{
				Headers: []string{"Linear-Signature"}, Timestamp: Timestamp{JSON: "webhookTimestamp", Unit: UnixMillis},
			}},
			EventID:        inHeaders("Linear-Delivery"),
			Tolerance:      time.Minute,
			BodyChanges:    true,
			RetryWindow:    7*time.Hour + time.Minute,
			AttemptTimeout: 5 * time.Second,
			Success:        []int{200},
			Notes: []string{
				"The member `webhookId` of the body is the webhook's, not the event's.",
				"The time is in the signed body (`webhookTimestamp`). Linear's library accepts one minute, so every attempt must have a time, and a body, of its own.",
			},
			Sources: []string{"linear/linear: packages/sdk/src/webhooks/client.ts", "linear.app/developers/webhooks, retries (from memory)"},
		},
		{
			Name: "mux", Title: "Mux",
			Schemes:     signsField("Mux-Signature"),
			EventID:     inBody("id"),
			Tolerance:   5 * time.Minute,
			RetryWindow: day,
			Sources:     []string{"muxinc/mux-node-sdk: webhooks", "docs.mux.com, retries (from memory)"},
		},
		{
			Name: "pagerduty", Title: "PagerDuty (v3)",
			Schemes:       []Scheme{{Headers: []string{"X-PagerDuty-Signature"}, Labels: []string{"v1"}}},
			EventID:       inBody("event.id"),
			RetryWindow:   day,
			WindowAssumed: true,
			Handshakes:    []string{"pagerduty"},
			Notes:         []string{"The secret is used as text, though it looks like base64."},
			Sources:       []string{"PagerDuty/go-pagerduty: webhookv3"},
		},
		{
			Name: "pusher", Title: "Pusher Channels",
			Schemes: []Scheme{{
				Headers: []string{"X-Pusher-Signature"}, Timestamp: Timestamp{JSON: "time_ms", Unit: UnixMillis},
			}},
			Tolerance: ToleranceOff,
			NoEventID: "Pusher sends no id, and several events in one delivery. " +
				"`event_id body_sha256` takes equal bytes for copies; a delivery has a `time_ms` of its own.",
			RetryWindow:    5 * time.Minute,
			AttemptTimeout: 4 * time.Second,
			Notes:          []string{"With several keys the header `X-Pusher-Key` says which one signed; name all their secrets."},
			Sources:        []string{"docs.bird.com, Pusher Channels webhooks", "pusher/pusher-http-node: webhook"},
		},
		{
			Name: "sanity", Title: "Sanity",
			Schemes: []Scheme{{
				Headers: []string{"sanity-webhook-signature"}, Labels: []string{"v1"}, Encoding: Base64URL,
				Payload: "{timestamp}.{body}", Timestamp: Timestamp{Field: "t", Unit: UnixMillis},
			}},
			EventID:     inHeaders("idempotency-key"),
			Tolerance:   ToleranceOff,
			RetryWindow: time.Minute,
			Notes:       []string{"Sanity's library does not look at the age of a delivery, so neither does the preset."},
			Sources:     []string{"sanity-io/webhook-toolkit: test/signature.test.ts", "sanity.io, changelog on retries", "the header idempotency-key (from memory)"},
		},
		{
			Name: "sentry", Title: "Sentry",
			Schemes:        signsBody("Sentry-Hook-Signature", "", SHA256, Hex),
			EventID:        inHeaders("Request-ID"),
			AttemptTimeout: time.Second,
			Notes: []string{
				"The secret is the integration's client secret.",
				"Sentry does not try again, and gives up after a second: an event that fails is lost unless your application answers faster.",
			},
			Sources: []string{"docs.sentry.io, integration platform, webhooks (from memory)"},
		},
		{
			Name: "terraform-cloud", Title: "HCP Terraform and Terraform Enterprise",
			Schemes: signsBody("X-TFE-Notification-Signature", "", SHA512, Hex),
			NoEventID: "Terraform sends no id of the event: `run_id` is that of a run, of which there are many. " +
				"`event_id body_sha256` takes equal bytes for copies.",
			RetryWindow:   day,
			WindowAssumed: true,
			Success:       []int{200},
			Sources:       []string{"developer.hashicorp.com, notification configurations (from memory)"},
		},
		{
			Name: "vercel", Title: "Vercel",
			Schemes:        signsBody("x-vercel-signature", "", SHA1, Hex),
			EventID:        inBody("id"),
			RetryWindow:    day,
			AttemptTimeout: 30 * time.Second,
			Sources:        []string{"hookdeck/webhook-skills: skills/vercel-webhooks", "vercel.com/docs/webhooks, retries and time-out (from memory)"},
		},
		{
			Name: "workos", Title: "WorkOS",
			Schemes:     signsFieldAs("WorkOS-Signature", "v1", UnixMillis),
			EventID:     inBody("id"),
			Tolerance:   3 * time.Minute,
			RetryWindow: 3 * day,
			Success:     []int{200},
			Sources:     []string{"workos/workos-python and workos-node: webhooks", "workos.com/docs, retries (from memory)"},
		},
	}
}
