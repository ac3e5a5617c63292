package verify

import "time"

// SenderNamed returns the preset of that name, and whether there is one.
func SenderNamed(name string) (Sender, bool) {
	for _, s := range presets() {
		if s.Name == name {
			return s, true
		}
	}
	return Sender{}, false
}

// Senders returns the names of all presets, in alphabetical order.
func Senders() []string {
	var names []string
	for _, s := range presets() {
		names = append(names, s.Name)
	}
	return names
}

// presets returns the table anew each time, so that nobody can change it.
func presets() []Sender {
	return []Sender{
		{
			// Signature and id: docs.github.com, "Validating webhook deliveries" and
			// "Best practices for using webhooks". The id is the same on redelivery
			// but not signed. GitHub never retries by itself; a delivery can be
			// redelivered by hand for 3 days, which is what RetryWindow says.
			Name:           "github",
			Schemes:        []Scheme{{Headers: []string{"X-Hub-Signature-256"}, Prefix: "sha256="}},
			SecretFormat:   Text,
			EventID:        []IDSource{{FromHeader, "X-GitHub-Delivery"}},
			RetryWindow:    72 * time.Hour,
			AttemptTimeout: 10 * time.Second,
		},
		{
			// Signature: the SDKs Paymos-labs/php-sdk and typescript-sdk, with their
			// conformance/contract.json. Eleven attempts, with gaps of 1, 2, 4, 8, 16
			// and 32 minutes and 1, 2, 4 and 8 hours (Paymos's blog). The key is the
			// whole secret, whsec_ included.
			Name:             "paymos",
			Schemes:          []Scheme{timestamped("X-Webhook-Signature")},
			SecretFormat:     Text,
			EventID:          []IDSource{{FromJSON, "event_id"}},
			UnsignedIDHeader: "X-Webhook-Id",
			Tolerance:        5 * time.Minute,
			RetryWindow:      16*time.Hour + 3*time.Minute,
			AttemptTimeout:   10 * time.Second,
		},
		{
			// Signature: the SDKs StableOps/stableops-api-typescript-sdk and
			// -python-sdk. The event id is neither signed nor in the body. The retry
			// schedule is NOT published: 16 hours is an assumption.
			Name:           "stableops",
			Schemes:        []Scheme{timestamped("X-Product-Signature")},
			SecretFormat:   Text,
			EventID:        []IDSource{{FromHeader, "X-Event-Id"}},
			Tolerance:      5 * time.Minute,
			RetryWindow:    16 * time.Hour,
			AttemptTimeout: 10 * time.Second,
		},
		{
			// standard-webhooks/standard-webhooks, spec/standard-webhooks.md. The
			// retry window is the end of the schedule it suggests, the time-out the
			// lower end of its range; a sender may differ in both.
			Name:           "standard-webhooks",
			Schemes:        []Scheme{standardWebhooks("webhook")},
			SecretFormat:   Base64,
			Tolerance:      5 * time.Minute,
			RetryWindow:    75*time.Hour + 35*time.Minute,
			AttemptTimeout: 15 * time.Second,
		},
		{
			// Signature: stripe-node and stripe-go. Retries: "up to three days" in
			// live mode, docs.stripe.com/webhooks. No attempt time-out is published.
			Name:         "stripe",
			Schemes:      []Scheme{timestamped("Stripe-Signature")},
			SecretFormat: Text,
			EventID:      []IDSource{{FromJSON, "id"}},
			Tolerance:    5 * time.Minute,
			RetryWindow:  72 * time.Hour,
		},
		{
			// docs.svix.com/retries and /receiving. Customers of Svix may send under
			// the unbranded names. Attempts end 27 h 35 min after the first.
			Name:           "svix",
			Schemes:        []Scheme{standardWebhooks("svix"), standardWebhooks("webhook")},
			SecretFormat:   Base64,
			Tolerance:      5 * time.Minute,
			RetryWindow:    27*time.Hour + 35*time.Minute,
			AttemptTimeout: 15 * time.Second,
		},
	}
}

// timestamped is the form that Stripe made common: t=<unix seconds>,v1=<hex>.
func timestamped(header string) Scheme {
	return Scheme{
		Headers:   []string{header},
		Labels:    []string{"v1"},
		Payload:   "{timestamp}.{body}",
		Timestamp: Timestamp{Field: "t"},
	}
}

// standardWebhooks is the form that Svix made common: three headers, and a list
// of signatures with spaces between them.
func standardWebhooks(prefix string) Scheme {
	return Scheme{
		Headers:   []string{prefix + "-signature"},
		Separator: " ",
		Labels:    []string{"v1"},
		Encoding:  Base64,
		Payload:   "{id}.{timestamp}.{body}",
		Timestamp: Timestamp{Header: prefix + "-timestamp"},
		IDHeader:  prefix + "-id",
	}
}
