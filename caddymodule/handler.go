package caddymodule

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc"
)

// Handler is a middleware for routes that receive webhooks. It verifies the
// signature of each delivery over its raw bytes, lets only the first delivery
// of an event through to the handlers behind it, and answers every further copy
// itself. A delivery that the upstream did not accept is let through again at
// the sender's next attempt.
//
// Senders deliver at least once: they cannot tell a lost request from a lost
// reply, so they ask again. With this handler the receiver behind it sees each
// event once, except where nobody can know whether it did its work (the
// upstream timed out, or the gateway died in the middle). Such a delivery is
// marked with the header `Webhook-Dedupe: possible-repeat`.
//
// The upstream's answer is held until the store knows of it, so a sender gets a
// 2xx only after the upstream has accepted the event. The answers that the
// handler makes itself (400, 401, 405, 413, 502, 503, 504) are written by it and
// not returned as errors, which departs from Caddy's habit: a site's
// `handle_errors` could turn a delivery that failed into a 2xx, and the event
// would be lost. They are logged, and available as
// `{http.webhook_dedupe.error}`.
//
// Placeholders: `{http.webhook_dedupe.event_id}`, `source`, `result`, `attempt`
// and `error`.
type Handler struct {
	// The preset of the sender, such as `stripe`, `github` or `standard-webhooks`;
	// `caddy webhook-dedupe senders` lists them all. It says how the sender signs,
	// where its event id is and how long it retries. Either this or
	// `signature` or `oidc` is required.
	Sender string `json:"sender,omitempty"`

	// The namespace of the event ids: letters, digits, `_`, `.` and `-`. It must
	// stay the same over time; another source makes all events new. Two routes
	// may share one only if both write it out and have the same scheme and
	// secrets. Default: the sender's name, or `custom`. Required if the store is
	// shared (redis).
	Source string `json:"source,omitempty"`

	// The secrets that deliveries are signed with; any may match. Placeholders
	// such as `{env.PAYMOS_SECRET}` and `{file./run/secrets/paymos}` are resolved
	// when the configuration is loaded. At least one is required, unless there is
	// `oidc`; none may be empty.
	Secrets []string `json:"secret,omitempty"`

	// Secrets that are being rotated out. An empty or expired one is skipped.
	PreviousSecrets []PreviousSecret `json:"previous_secret,omitempty"`

	// How long a finished event is remembered. Copies that come later are new
	// events, so it must be longer than `retry_window` plus `tolerance`, and
	// should cover replays by hand. Default: the longest of 7d and
	// `retry_window` + `tolerance` + 1d.
	TTL caddy.Duration `json:"ttl,omitempty"`

	// What to do with an event of which nobody knows whether the upstream did its
	// work: `redeliver` lets the next attempt through, marked `possible-repeat`;
	// `hold` answers 503 until an operator decides. Default: `redeliver`.
	OnUnknown string `json:"on_unknown,omitempty"`

	// A signature scheme of one's own, instead of a sender's.
	Signature *verify.Scheme `json:"signature,omitempty"`

	// Which OpenID Connect tokens prove deliveries, in the place of a signature and
	// of secrets: for the sender `google-pubsub`, where it is required, or without a
	// sender and with `event_id`. Default: none.
	OIDC *oidc.Config `json:"oidc,omitempty"`

	// How secrets become keys: `text` (the text itself), `base64` (a `whsec_` in
	// front is dropped) or `hex`. Default: the sender's; `text` with `signature`.
	SecretFormat string `json:"secret_format,omitempty"`

	// Where the id of the event is. Several sources form a composite id. A JSON
	// path with `[*]` is for bodies that carry several events. `none` verifies
	// deliveries and nothing more: copies reach the upstream. Default: the
	// sender's. Required with `signature`, and for senders that have no id.
	EventID []verify.IDSource `json:"event_id,omitempty"`

	// The greatest age of the signed timestamp, in both directions: a duration,
	// or `off`. Default: the sender's; `5m` with `signature`.
	Tolerance string `json:"tolerance,omitempty"`

	// The time from the sender's first attempt to its last. Default: the
	// sender's; 16h with `signature`.
	RetryWindow caddy.Duration `json:"retry_window,omitempty"`

	// What to do when one id comes with two bodies; of an event in a batch that is
	// its element. `forward`: another body is another event. `duplicate`: the id
	// alone counts. Default: `duplicate` for senders whose signature covers the id,
	// or whose body changes from try to try, unless `event_id` is overridden; else
	// `forward`.
	OnReusedID string `json:"on_reused_id,omitempty"`

	// Whether the same signed bytes under another id, or with another body where
	// the signature does not cover the body, are refused with 503: `on` or `off`.
	// Default: `on` where the signature covers a timestamp and not the id or not
	// the body; `off` elsewhere. Refused where the signature covers no timestamp.
	ReplayGuard string `json:"replay_guard,omitempty"`

	// The URL that the sender was told, for schemes that sign the URL. It is
	// configured, and never taken from the request's headers. Default: none.
	PublicURL string `json:"public_url,omitempty"`

	// What the signature covers of a body with a Content-Encoding: `wire`, the body
	// as it comes, or `decoded`, what is in it, for senders that sign first and
	// compress then (gzip, deflate or zstd; others get 415). The upstream gets the
	// body as it came. `decoded` lets strangers make the gateway decompress, up to
	// `max_body`. Default: `wire`.
	SignedBody string `json:"signed_body,omitempty"`

	// How long a claim on an event holds if the gateway dies; it is renewed while
	// the upstream works. At least 1s. Default: 30s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// The longest time for the whole exchange with the upstream. After it the
	// sender gets 504 and the event is in doubt. Default: 2m.
	UpstreamTimeout caddy.Duration `json:"upstream_timeout,omitempty"`

	// How long a copy waits for the delivery in flight before it gets 503; 0 is
	// not at all. Default: 5s, or half the sender's attempt time-out less 500ms
	// where that is shorter.
	Wait *caddy.Duration `json:"wait,omitempty"`

	// The answers of the upstream that mean it accepted the event. Only 2xx.
	// Default: every 2xx.
	Success []int `json:"success,omitempty"`

	// The text that the body of a success begins with, byte for byte, for
	// applications that report errors with a 2xx too: an answer that begins
	// otherwise, or has no body, is refused, and the sender gets 502. A body in
	// gzip, deflate or zstd is looked into; one in another coding is refused. Not
	// longer than `max_response`. Default: empty, any body.
	SuccessBodyPrefix string `json:"success_body_prefix,omitempty"`

	// How many bytes of the upstream's answer are held until the event is
	// settled. A longer answer is streamed from there: one whose status accepts the
	// event settles it before that, any other when the upstream has ended.
	// Default: 1048576.
	MaxResponse int64 `json:"max_response,omitempty"`

	// How many deliveries of this source may be in the upstream at once, over all
	// its routes; beyond it senders get 503 with Retry-After, also for copies of
	// finished events. Copies that wait do not count.
	// Default: 0, unlimited.
	MaxInFlight int `json:"max_in_flight,omitempty"`

	// The answer to copies of an event that the upstream has accepted. Default:
	// the sender's; else 200 with an empty body.
	Duplicate Reply `json:"duplicate,omitzero"`

	// The status for forged and unsigned requests. Stale ones get 401 all the
	// same: a wrong clock must not make senders give up. Default: 401.
	RejectStatus int `json:"reject_status,omitempty"`

	// What to do with a delivery when the store cannot be asked: `reject` answers
	// 503; `forward` lets it through, marked `possible-repeat`, and so gives up
	// the promise while the store is away. Default: `reject`.
	OnStoreError string `json:"on_store_error,omitempty"`

	// The methods of deliveries; others get 405 unless the handshake allows them.
	// Default: `POST`.
	Methods []string `json:"methods,omitempty"`

	// A registration challenge that is passed to the upstream without touching the
	// store, besides those that the sender's preset brings: the name of a sender
	// (`asana`, `discord`, `dropbox`, `line`, `meta`, `microsoft-graph`, `monday`,
	// `pagerduty`, `slack`, `trello`, `woocommerce`, `x-twitter`, `xero` or `zoom`)
	// lets exactly its challenge through, verified if the sender signs it; `get`
	// and `head` let every request of that method through, unverified, if it has
	// no body; `none` takes away the preset's. Default: the preset's own.
	Handshake string `json:"handshake,omitempty"`

	// The largest body in bytes; larger ones get 413. Default: 26214400 (25MiB).
	MaxBody int64 `json:"max_body,omitempty"`

	// Extra fields of the delivery log.
	LogFields []LogField `json:"log_field,omitempty"`

	// Let everything through, unverified too, and only report what would have been
	// done. Records are written for verified deliveries. Default: false.
	DryRun bool `json:"dry_run,omitempty"`

	settings
}

// PreviousSecret is a secret that is being rotated out.
type PreviousSecret struct {
	// The secret; placeholders are resolved when the configuration is loaded.
	Value string `json:"value,omitempty"`

	// When it ends to be accepted, in RFC 3339. Default: never.
	Until string `json:"until,omitempty"`
}

// Reply is an answer of the gateway's own.
type Reply struct {
	// The status, a 2xx. Default: 200.
	Status int `json:"status,omitempty"`

	// The body. Default: empty.
	Body string `json:"body,omitempty"`

	// The Content-Type of a body. Default: `text/plain; charset=utf-8`.
	ContentType string `json:"content_type,omitempty"`
}

// LogField is an extra field of the delivery log.
type LogField struct {
	// The name of the field.
	Name string `json:"name,omitempty"`

	// `json` or `header`.
	Kind string `json:"kind,omitempty"`

	// The path in the JSON body, or the name of the header.
	From string `json:"from,omitempty"`
}

// settings are what Provision makes of the configuration.
type settings struct {
	app            *App
	logger         *zap.Logger
	verifier       *verify.Verifier
	diagnostician  *diagnostician
	policy         dedupe.Policy
	replayGuard    bool
	forwardReused  bool
	signsContent   bool
	currentSecrets int
	places         *atomic.Int64 // of max_in_flight that are taken
	methods        map[string]bool
	handshakes     []*handshake
	ownQuery       url.Values // of public_url
	// punctual says that the handlers behind this one are; see punctual.go.
	punctual *atomic.Bool
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.webhook_dedupe",
		New: func() caddy.Module { return new(Handler) },
	}
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	stripOwnHeaders(r.Header)
	closeConnection(w, r)
	d := h.newDelivery(w, r, next, time.Now())
	d.publish()
	defer d.file()
	defer d.leaveRoom()
	if !h.methods[r.Method] && !h.mayBeHandshake(r) {
		return d.refuse(notAllowed())
	}
	return d.serve()
}

// accepts reports whether an answer with this status means that the upstream
// accepted the event.
func (h *Handler) accepts(status int) bool {
	if len(h.Success) == 0 {
		return status >= 200 && status <= 299
	}
	for _, s := range h.Success {
		if s == status {
			return true
		}
	}
	return false
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
