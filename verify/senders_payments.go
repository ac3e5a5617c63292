package verify

import "time"

// paymentSenders move money.
func paymentSenders() []Sender {
	return []Sender{
		{
			Name: "adyen-banking", Title: "Adyen (platform and management)",
			Schemes:      signsBody("HmacSignature", "", SHA256, Base64),
			SecretFormat: Hex,
			NoEventID: "Adyen's platform and management webhooks have no id of the event: `data.id` is that of an account or a transfer, of which there are many events. " +
				"`event_id body_sha256` takes equal bytes for copies.",
			RetryWindow:    30 * day,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"For webhooks that are signed as a whole. Those for payments, which carry their signature inside, have the sender `adyen`.",
				"Adyen sends in order: one event that keeps failing holds up those behind it.",
			},
			Sources: []string{"Adyen/adyen-python-api-library: Adyen/util.py, test/UtilTest.py", "docs.adyen.com/development-resources/webhooks/troubleshoot"},
		},
		{
			Name: "airwallex", Title: "Airwallex",
			Schemes:     signsHeader("x-signature", "", Hex, "{timestamp}{body}", Timestamp{Header: "x-timestamp", Unit: UnixMillis}),
			EventID:     inBody("id"),
			Tolerance:   5 * time.Minute,
			RetryWindow: 3 * day,
			Success:     []int{200},
			Notes:       []string{"Airwallex names no tolerance; 5 minutes are usual."},
			Sources:     []string{"airwallex.com/docs: listen for webhook events, tips for using webhooks"},
		},
		{
			Name: "authorize-net", Title: "Authorize.Net",
			Schemes:     signsBody("X-ANET-Signature", "sha512=", SHA512, Hex),
			EventID:     inBody("notificationId"),
			RetryWindow: 216*time.Hour + 9*time.Minute,
			Success:     []int{200},
			Notes:       []string{"The secret is the signature key as shown, used as text. Signatures are in upper case."},
			Sources:     []string{"developer.authorize.net/api/reference/features/webhooks.html (from memory)"},
		},
		{
			Name: "coinbase-commerce", Title: "Coinbase Commerce",
			Schemes:     signsBody("X-CC-Webhook-Signature", "", SHA256, Hex),
			EventID:     inBody("event.id"),
			BodyChanges: true,
			RetryWindow: 3 * day,
			Success:     []int{200},
			Notes:       []string{"Every attempt has another `attempt_number` and so another body and signature; `event.id` stays."},
			Sources:     []string{"coinbase/coinbase-commerce-python: tests/test_webhook.py", "docs.cdp.coinbase.com, Commerce webhooks, retries (from memory)"},
		},
		{
			Name: "mollie-next", Title: "Mollie (next-generation webhooks)",
			Schemes:        signsBody("X-Mollie-Signature", "sha256=", SHA256, Hex),
			EventID:        inBody("id"),
			RetryWindow:    26 * time.Hour,
			AttemptTimeout: 15 * time.Second,
			Success:        []int{200},
			Notes: []string{
				"While a secret is rotated there is a header line for each key.",
				"Mollie's classic webhooks (a form with `id=tr_...`) are not offered: they are unsigned, and every change of a payment's status has the same body, so to drop copies would be to lose events.",
			},
			Sources: []string{"mollie/mollie-api-php: src/Webhooks/SignatureValidator.php, docs/recipes", "docs.mollie.com, webhooks, retries and time-out (from memory)"},
		},
		{
			Name: "paddle", Title: "Paddle",
			Schemes: []Scheme{{
				Headers: []string{"Paddle-Signature"}, Separator: ";", Labels: []string{"h1"},
				Payload: "{timestamp}:{body}", Timestamp: Timestamp{Field: "ts"},
			}},
			EventID:        inBody("event_id"),
			Tolerance:      5 * time.Second,
			RetryWindow:    3 * day,
			AttemptTimeout: 5 * time.Second,
			Success:        []int{200},
			Notes: []string{
				"The tolerance is that of Paddle's library for Node, and it is tight: keep the gateway's clock right, or set `tolerance 5m`. The id is signed, so a repeated delivery is a duplicate all the same.",
				"`notification_id` is another for each destination and each replay; `event_id` is that of the event, so a replay by hand is a duplicate.",
				"While a secret is rotated there are several `h1`. Any may match, where Paddle's library for Node looks at the last only and the one for Go refuses two.",
			},
			Sources: []string{"developer.paddle.com/webhooks/about/respond-to-webhooks, /how-webhooks-work", "PaddleHQ/paddle-node-sdk and paddle-go-sdk: tests"},
		},
		{
			Name: "paymos", Title: "Paymos",
			Schemes:          signsField("X-Webhook-Signature"),
			EventID:          inBody("event_id"),
			UnsignedIDHeader: "X-Webhook-Id",
			Tolerance:        5 * time.Minute,
			RetryWindow:      16*time.Hour + 3*time.Minute,
			AttemptTimeout:   10 * time.Second,
			Notes: []string{
				"The key is the whole secret as text, `whsec_` included.",
				"The header `X-Webhook-Id` repeats the id unsigned. The signed one counts; a difference is warned about and counted (`id_mismatches_total`).",
				"A replay by hand, from the console's last 100 events, has the id of the first.",
			},
			Sources: []string{"Paymos-labs/php-sdk: src/Webhook", "Paymos-labs/typescript-sdk: src/webhooks.ts, conformance/contract.json", "Paymos's blog on its eleven attempts"},
		},
		{
			Name: "paystack", Title: "Paystack",
			Schemes:     signsBody("x-paystack-signature", "", SHA512, Hex),
			EventID:     inBody("event", "data.id"),
			IDReused:    true,
			RetryWindow: 72*time.Hour + 12*time.Minute,
			Success:     []int{200},
			Notes: []string{
				"The secret is the API's secret key.",
				"There is no id of the event. Kind and `data.id` stand in for it, together with the body: a second event of one kind about one thing passes, if anything in it differs.",
				"Events whose `data` has no `id` are refused with 400. If you subscribe to such, set `event_id body_sha256`.",
			},
			Sources: []string{"paystack.com/docs/payments/webhooks (from memory)"},
		},
		{
			Name: "razorpay", Title: "Razorpay",
			Schemes:        signsBody("X-Razorpay-Signature", "", SHA256, Hex),
			EventID:        inHeaders("x-razorpay-event-id"),
			RetryWindow:    day,
			AttemptTimeout: 5 * time.Second,
			Notes: []string{
				"Events from before a change of the secret keep the old one on every retry: leave it as `previous_secret` for a day.",
				"A replay, on request at Razorpay, has the id of the first.",
			},
			Sources: []string{"razorpay.com/docs/webhooks/best-practices, /faqs", "razorpay/razorpay-python: tests/test_client_utility.py", "Razorpay's time-out (from memory)"},
		},
		{
			Name: "square", Title: "Square",
			Schemes:        []Scheme{{Headers: []string{"x-square-hmacsha256-signature"}, Encoding: Base64, Payload: "{url}{body}"}},
			EventID:        inBody("event_id"),
			RetryWindow:    3 * day,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"Square signs the notification URL as its console shows it: write the same as `public_url`.",
				"Square's pages name 24 hours in one place and 72 in another; the longer is taken.",
			},
			Sources: []string{"developer.squareup.com/docs/webhooks/troubleshooting", "square/square-python-sdk: tests/integration/test_webhooks_helper.py"},
		},
		{
			Name: "stableops", Title: "StableOps",
			Schemes:        signsField("X-Product-Signature"),
			EventID:        inHeaders("X-Event-Id"),
			Tolerance:      5 * time.Minute,
			RetryWindow:    16 * time.Hour,
			WindowAssumed:  true,
			AttemptTimeout: 10 * time.Second,
			Notes: []string{
				"The key is the whole secret as text, `whsec_` included. The previous secret is valid for 24 hours after a rotation.",
				"A replay by hand has a delivery id of its own (`X-Delivery-Id`) and the event id of the first.",
			},
			Sources: []string{"StableOps/stableops-api-typescript-sdk: src/signature.ts", "StableOps/stableops-api-python-sdk: stableops/webhooks.py", "stableops.dev/en/docs/api-reference/rotate-signing-secret"},
		},
		{
			Name: "stripe", Title: "Stripe",
			Schemes:     signsField("Stripe-Signature"),
			EventID:     inBody("id"),
			Tolerance:   5 * time.Minute,
			RetryWindow: 3 * day,
			Notes: []string{
				"The key is the whole secret as text, `whsec_` included. While a secret is rolled there are several `v1`.",
				"Test mode retries for hours only, live mode for 3 days. A resend by hand, possible for weeks, has the id of the first: let `ttl` cover it.",
				"An account's endpoint and a Connect endpoint get the same event under the same id: give them routes with a `source` each.",
			},
			Sources: []string{"stripe/stripe-node: test/Webhook.spec.ts", "stripe/stripe-go: webhook", "docs.stripe.com/webhooks", "the time for resends (from memory)"},
		},
		{
			Name: "worldpay", Title: "Worldpay (Access)",
			Schemes: []Scheme{{
				Headers: []string{"Event-Signature"}, Labels: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, Prefix: "SHA256/",
			}},
			EventID:        inBody("eventId"),
			RetryWindow:    7 * day,
			AttemptTimeout: 10 * time.Second,
			Success:        []int{200},
			Notes: []string{
				"The labels are the numbers of keys. While a key is replaced there are two signatures, in any order.",
				"Worldpay asks for 400 as the answer to a bad signature: set `reject_status 400` if you want its reports to say so.",
				"An event that is not acknowledged delays those after it.",
			},
			Sources: []string{"docs.worldpay.com/access/products/events/signature", "developer.worldpay.com, events"},
		},
	}
}
