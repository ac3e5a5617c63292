package verify

import "time"

// shopSenders are shops and those who sell for others.
func shopSenders() []Sender {
	return []Sender{
		{
			Name: "gocardless", Title: "GoCardless",
			Schemes:       signsBody("Webhook-Signature", "", SHA256, Hex),
			EventID:       inBody("events[*].id"),
			RetryWindow:   3 * day,
			WindowAssumed: true,
			Notes: []string{
				"A delivery carries up to 250 events, each with an id of its own; `meta.webhook_id` names the delivery only.",
				"GoCardless suggests 498 as the answer to a bad signature; any error will do.",
			},
			Sources: []string{"gocardless/gocardless-pro-python: tests/webhooks_test.py", "developer.gocardless.com, webhooks, eight tries and 250 events (from memory)"},
		},
		{
			Name: "lemon-squeezy", Title: "Lemon Squeezy",
			Schemes: signsBody("X-Signature", "", SHA256, Hex),
			NoEventID: "Lemon Squeezy sends no id of the event: `meta.webhook_id` names the webhook, and `data.id` the order or subscription. " +
				"`event_id body_sha256` takes equal bytes for copies.",
			RetryWindow: 155 * time.Second,
			Success:     []int{200},
			Notes:       []string{"Three more tries, after 5, 25 and 125 seconds: what fails for longer is never sent again, unless by hand."},
			Sources:     []string{"docs.lemonsqueezy.com/help/webhooks (from memory)"},
		},
		{
			Name: "shopify", Title: "Shopify",
			Schemes:        signsBody("X-Shopify-Hmac-Sha256", "", SHA256, Base64),
			EventID:        inHeaders("X-Shopify-Event-Id", "X-Shopify-Webhook-Id"),
			RetryWindow:    4 * time.Hour,
			AttemptTimeout: 5 * time.Second,
			Notes: []string{
				"The secret is the app's client secret, as text. During its rotation Shopify signs with either for a while: name the old one as `previous_secret`.",
				"`X-Shopify-Event-Id` alone is the same for all subscriptions to an event: one endpoint for `orders/create` and `orders/paid` would lose the second. With `X-Shopify-Webhook-Id` each subscription counts for itself.",
				"After 8 failures in 4 hours Shopify deletes the subscription.",
			},
			Sources: []string{
				"shopify.dev: apps/build/webhooks/ignore-duplicates; changelog on the retry mechanism", "Shopify/shopify-app-js: webhooks/__tests__/validate.test.ts",
				"that X-Shopify-Webhook-Id stays over retries (from memory)",
			},
		},
		{
			Name: "woocommerce", Title: "WooCommerce",
			Schemes:        signsBody("X-WC-Webhook-Signature", "", SHA256, Base64),
			EventID:        append(inHeaders("X-WC-Webhook-Delivery-ID"), IDSource{Kind: FromBodySHA256}),
			RetryWindow:    0,
			AttemptTimeout: time.Minute,
			Handshakes:     []string{"woocommerce"},
			Notes: []string{
				"`X-WC-Webhook-Delivery-ID` is made of the webhook's number and the second, so that two events in one second share it: the body is part of the id here. " +
					"Equal bodies within one second are still taken for copies. That is no loss for the topics that send a whole order or product; for `action.*` topics set `event_id none`.",
				"WooCommerce never tries again, and switches a webhook off after more than 5 failures in a row.",
				"The key is the secret with HTML entities decoded: write `&` where the shop's database says `&amp;`.",
			},
			Sources: []string{"woocommerce/woocommerce: plugins/woocommerce/includes/class-wc-webhook.php"},
		},
		{
			Name: "xero", Title: "Xero",
			Schemes:        signsBody("x-xero-signature", "", SHA256, Base64),
			EventID:        inBody("events[*].resourceId", "events[*].eventType", "events[*].eventDateUtc"),
			RetryWindow:    day,
			AttemptTimeout: 5 * time.Second,
			Success:        []int{200},
			Handshakes:     []string{"xero"},
			Notes: []string{
				"Events have no id: what changed, how, and when to the millisecond stand in for it.",
				"Xero wants 200 with an empty body and without cookies from your application, and 401 for a bad signature: leave `reject_status` as it is.",
			},
			Sources: []string{"developer.xero.com/documentation/webhooks/configuring-your-server", "the members of an event (from memory)"},
		},
	}
}
