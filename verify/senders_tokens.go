package verify

import "time"

// tokenSenders prove their deliveries by a token, which covers neither the body
// nor the id.
func tokenSenders() []Sender {
	return []Sender{{
		Name: "google-pubsub", Title: "Google Cloud Pub/Sub (push)",
		Authenticator:  "oidc",
		EventID:        inBody("message.messageId"),
		BodyChanges:    true,
		RetryWindow:    7 * day,
		AttemptTimeout: 10 * time.Second,
		Success:        []int{200, 201, 202, 204},
		Notes: []string{
			"There is no secret: the route needs an `oidc` block with the audience and the service account of the push subscription, for which authentication must be switched on.",
			"Pub/Sub tries until it gets a success, for as long as it keeps the message: 7 days by default, and up to 31. Set `retry_window` to that time if it is longer.",
			"The attempt time-out is the subscription's acknowledgement deadline, 10 to 600 seconds, by default 10.",
			"A message id is unique within its topic. Give each topic a `source` of its own. Several subscriptions of one topic that push to one source are copies of each other.",
			"With a dead-letter topic the body of every retry has another `deliveryAttempt`, so that the id alone counts (`on_reused_id duplicate`). Every answer but a success is an attempt there, also a 503 to a copy of what is in flight: allow more than the default of 5.",
			"With payload unwrapping and message metadata the id is a header: `event_id header x-goog-pubsub-message-id`.",
			"A seek to an earlier time sends finished messages again, under their ids: they are duplicates.",
		},
		Sources: []string{
			"cloud.google.com/pubsub/docs/push", "cloud.google.com/pubsub/docs/authenticate-push-subscriptions",
			"cloud.google.com/pubsub/docs/subscription-properties", "cloud.google.com/pubsub/docs/payload-unwrapping",
			"deliveryAttempt in the body (from memory)",
		},
	}}
}
