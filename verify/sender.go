package verify

import "time"

// Sender is what is known of a sender of webhooks: how it signs, where its event
// id is, and how long it tries. The values are facts about the sender, not
// settings; a route may override some of them.
type Sender struct {
	// Name is what a configuration calls the sender.
	Name string
	// Title is the sender's own spelling of its name.
	Title string
	// Schemes are alternatives, each with a signature header, a timestamp and an
	// id of its own. Those whose signature header is present in a request are
	// tried, in their order.
	Schemes []Scheme
	// Authenticator names what proves the sender's deliveries in the place of
	// signatures and secrets, as a configuration calls it: "oidc". There are no
	// Schemes then.
	Authenticator string
	// SecretFormat is how the sender's secrets become keys: Text, Base64 or Hex.
	// The table may leave out Text.
	SecretFormat string
	// EventID is where the event id is. Empty: the IDHeader of the scheme, or,
	// with NoEventID, nowhere.
	EventID []IDSource
	// NoEventID says why the sender has no id that a gateway could take by
	// itself. A route must then choose: an event_id of its own, or none.
	NoEventID string
	// UnsignedIDHeader is a header that repeats the signed id, outside the
	// signature. Empty: there is none.
	UnsignedIDHeader string
	// IDChanges is when the sender gives the same event another id.
	IDChanges IDChange
	// IDReused tells that the id is that of a thing and a kind of event: another
	// body under it is another event.
	IDReused bool
	// Tolerance is the age of a signed timestamp that the sender's own libraries
	// accept, in both directions. Zero: the sender signs no timestamp. Negative
	// (ToleranceOff): it signs one, and its libraries do not look at its age.
	Tolerance time.Duration
	// SignedOnce tells that retries carry the timestamp of the first attempt. The
	// tolerance must outlast the retry window then.
	SignedOnce bool
	// BodyChanges tells that a retry may have another body than the first attempt.
	BodyChanges bool
	// RetryWindow is the time from the first attempt to the last. Zero: the sender
	// never tries again by itself.
	RetryWindow time.Duration
	// WindowAssumed tells that the sender publishes no retry window, and that
	// RetryWindow is an assumption.
	WindowAssumed bool
	// AttemptTimeout is how long one attempt may take. Zero: not published.
	AttemptTimeout time.Duration
	// Success are the statuses that the sender takes for success. Empty: every
	// 2xx.
	Success []int
	// Duplicate is how a duplicate is answered. Zero: with 200 and no body.
	Duplicate Answer
	// Handshakes name the registration challenges that the sender sends to the
	// same URL.
	Handshakes []string
	// Notes tell users what to mind, in sentences of Markdown.
	Notes []string
	// Sources are where the facts are from: pages, or files of the sender's
	// libraries. One that ends in "(from memory)" was not read again.
	Sources []string
}

// IDSigned reports whether the signatures cover the whole event id that the
// preset takes.
func (s Sender) IDSigned() bool {
	for _, scheme := range s.Schemes {
		c, err := compile(scheme.withDefaults(), s.idSources(scheme), publicURL{text: "of the route"})
		if err != nil || !c.idSigned {
			return false
		}
	}
	return len(s.Schemes) > 0
}

// idSources are where a delivery under one of the schemes has its id.
func (s Sender) idSources(scheme Scheme) []IDSource {
	if len(s.EventID) == 0 && scheme.IDHeader != "" {
		return []IDSource{{FromHeader, scheme.IDHeader}}
	}
	return s.EventID
}

// IDChange is when a sender gives the same event another id.
type IDChange string

// The values of IDChange.
const (
	// NeverChanges: retries and replays have the id of the first attempt.
	NeverChanges IDChange = ""
	// ChangesOnReplay: a delivery repeated by hand has an id of its own.
	ChangesOnReplay IDChange = "replay"
	// ChangesOnRetry: every attempt has an id of its own, so that it is useless
	// for telling copies apart.
	ChangesOnRetry IDChange = "retry"
)

// Answer is an answer to a sender.
type Answer struct {
	Status      int
	Body        string
	ContentType string
}
