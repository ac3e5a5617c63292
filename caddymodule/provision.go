package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// The defaults of a route.
const (
	defaultLease           = 30 * time.Second
	defaultUpstreamTimeout = 2 * time.Minute
	defaultWait            = 5 * time.Second
	defaultRetryWindow     = 16 * time.Hour
	defaultTTL             = 7 * 24 * time.Hour
	defaultMaxResponse     = 1 << 20
	defaultMaxBody         = 25 << 20
	customSource           = "custom"
)

// Provision checks the configuration in full and refuses what is unsafe. It
// reaches out to nothing.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	app, err := ctx.App(appName)
	if err != nil {
		return err
	}
	h.app = app.(*App)
	if err := h.provision(ctx); err != nil {
		return fmt.Errorf("webhook_dedupe route %s: %w", h.routeName(), err)
	}
	return nil
}

// routeName names the route in errors.
func (h *Handler) routeName() string {
	sender := h.Sender
	switch {
	case sender != "":
	case h.OIDC != nil:
		sender = "with a token"
	default:
		sender = "with its own signature"
	}
	return fmt.Sprintf("%q (sender %s)", h.Source, sender)
}

func (h *Handler) provision(ctx caddy.Context) error {
	claimed := sourceClaim{written: h.Source != ""}
	if err := h.setSource(); err != nil {
		return err
	}
	sender, err := h.setVerifier()
	if err != nil {
		return err
	}
	for _, set := range []func(verify.Sender) error{
		h.setUpstream, h.setPolicy, h.setReuse, h.setReplayGuard, h.setSignedBody, h.setAnswers, h.setMethods, h.setHandshakes, h.setLogFields,
	} {
		if err := set(sender); err != nil {
			return err
		}
	}
	h.places = placesOf(h.app.identity, h.Source)
	h.punctual = new(atomic.Bool)
	if h.verifyOnly() {
		return metrics.register(ctx.GetMetricsRegistry())
	}
	claimed.same = fmt.Sprintf("%x %s %s", h.verifier.Fingerprint(), h.OnReusedID, h.SignedBody)
	claimed.route = h.routeName()
	if err := h.app.claimSource(h.Source, claimed); err != nil {
		return err
	}
	return metrics.register(ctx.GetMetricsRegistry())
}

func (h *Handler) setSource() error {
	if h.Source == "" {
		if h.app.store.Shared() && !h.verifyOnly() {
			return errors.New("the store is shared with other gateways: write out a `source`, and keep it over time")
		}
		h.Source = h.Sender
		if h.Source == "" {
			h.Source = customSource
		}
	}
	return dedupe.CheckSource(h.Source)
}

// setVerifier returns the facts of the sender, for the defaults of the rest.
func (h *Handler) setVerifier() (verify.Sender, error) {
	sender, known := verify.SenderNamed(h.Sender)
	if !known {
		sender.RetryWindow = defaultRetryWindow
	}
	c, err := h.verifyConfig()
	if err != nil {
		return sender, err
	}
	switch {
	case h.OIDC != nil: // whose errors say what is wrong with a token
		c.Authenticator, err = h.authenticator()
	case sender.Authenticator == "":
		h.diagnostician = &diagnostician{config: c}
		c.Secrets, err = h.secrets()
	}
	if err != nil {
		return sender, err
	}
	if h.verifier, err = verify.New(c); err != nil {
		return sender, err
	}
	return sender, h.checkVerifyOnly()
}

// verifyConfig is how the route verifies, but for its secrets.
func (h *Handler) verifyConfig() (verify.Config, error) {
	tolerance, err := parseTolerance(h.Tolerance)
	return verify.Config{
		Sender: h.Sender, Scheme: h.Signature, SecretFormat: h.SecretFormat,
		EventID: h.EventID, PublicURL: h.PublicURL, Tolerance: tolerance,
	}, err
}

func parseTolerance(s string) (time.Duration, error) {
	switch s {
	case "":
		return 0, nil
	case "off":
		return verify.ToleranceOff, nil
	}
	d, err := caddy.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("tolerance %q is neither a positive duration nor `off`", s)
	}
	return d, nil
}

func (h *Handler) setUpstream(sender verify.Sender) error {
	h.Lease = or(h.Lease, caddy.Duration(defaultLease))
	h.UpstreamTimeout = or(h.UpstreamTimeout, caddy.Duration(defaultUpstreamTimeout))
	h.MaxResponse = or(h.MaxResponse, defaultMaxResponse)
	h.MaxBody = or(h.MaxBody, defaultMaxBody)
	h.RetryWindow = or(h.RetryWindow, caddy.Duration(sender.RetryWindow))
	if h.Wait == nil {
		wait := usualWait(sender)
		h.Wait = (*caddy.Duration)(&wait)
	}
	switch {
	case time.Duration(h.Lease) < time.Second:
		return errors.New("the lease is shorter than 1s")
	case h.UpstreamTimeout < 0, *h.Wait < 0, h.RetryWindow < 0, h.MaxResponse < 0, h.MaxBody < 0, h.MaxInFlight < 0:
		return errors.New("durations, sizes and numbers must not be negative")
	case int64(len(h.SuccessBodyPrefix)) > h.MaxResponse:
		return fmt.Errorf("success: body_prefix is longer than max_response %d", h.MaxResponse)
	case h.MaxBody >= h.app.MaxBuffered:
		return fmt.Errorf("max_body %d does not fit into max_buffered %d", h.MaxBody, h.app.MaxBuffered)
	case h.UpstreamTimeout+h.Lease > h.RetryWindow && !h.verifyOnly():
		h.logger.Warn("upstream_timeout plus lease is longer than the sender's retry window: an event in doubt may never be tried again",
			zap.String("source", h.Source))
	}
	for _, s := range h.Success {
		if s < 200 || s > 299 {
			return fmt.Errorf("success %d: only 2xx answers can mean that the event was accepted", s)
		}
		if h.SuccessBodyPrefix != "" && (s == http.StatusNoContent || s == http.StatusResetContent) {
			return fmt.Errorf("success %d: an answer with this status has no body that could begin with body_prefix", s)
		}
	}
	return nil
}

func (h *Handler) setPolicy(sender verify.Sender) error {
	tolerance := h.verifier.Tolerance()
	shortest := time.Duration(h.RetryWindow) + tolerance
	if sender.SignedOnce && tolerance > 0 && tolerance < time.Duration(h.RetryWindow) {
		h.logger.Warn("the tolerance is shorter than the retry window, and the sender's retries carry the time of the first attempt: late ones will be refused as stale",
			zap.String("source", h.Source))
	}
	if h.TTL == 0 {
		h.TTL = caddy.Duration(usualTTL(shortest))
	}
	if time.Duration(h.TTL) <= shortest {
		return fmt.Errorf("ttl %v is not longer than retry_window plus tolerance (%v): a late copy would be taken for a new event",
			time.Duration(h.TTL), shortest)
	}
	hold, err := oneOf("on_unknown", &h.OnUnknown, "redeliver", "hold")
	if err != nil {
		return err
	}
	forward, err := oneOf("on_store_error", &h.OnStoreError, "reject", "forward")
	if err != nil {
		return err
	}
	h.policy = dedupe.Policy{
		TTL: time.Duration(h.TTL), Lease: time.Duration(h.Lease), Wait: time.Duration(*h.Wait),
		Hold: hold, ForwardOnError: forward,
	}
	if h.DryRun {
		h.policy.Wait = 0 // a dry run holds nothing up
	}
	return nil
}

func (h *Handler) setReuse(sender verify.Sender) error {
	usual, other := "forward", "duplicate"
	if h.Sender != "" && len(h.EventID) == 0 && idCounts(sender) {
		usual, other = other, usual
	}
	if _, err := oneOf("on_reused_id", &h.OnReusedID, usual, other); err != nil {
		return err
	}
	h.forwardReused = h.OnReusedID == "forward"
	return nil
}

func (h *Handler) setReplayGuard(verify.Sender) error {
	usual, other := "off", "on"
	if h.verifier.HasTimestamp() && !(h.verifier.IDSigned() && h.verifier.BodySigned()) {
		usual, other = other, usual
	}
	if _, err := oneOf("replay_guard", &h.ReplayGuard, usual, other); err != nil {
		return err
	}
	h.replayGuard = h.ReplayGuard == "on"
	if !h.verifier.BodySigned() {
		h.logger.Warn("the sender's signature does not cover the whole body: who has seen one delivery can send another body with its signature, which replay_guard prevents only where a time is signed",
			zap.String("source", h.Source), zap.Bool("replay_guard", h.replayGuard))
	}
	if h.replayGuard && !h.verifier.HasTimestamp() {
		return errors.New("replay_guard needs a timestamp under the signature; without one, equal bytes may be different events")
	}
	return nil
}

func (h *Handler) setSignedBody(verify.Sender) (err error) {
	if h.signsContent, err = oneOf("signed_body", &h.SignedBody, "wire", "decoded"); err != nil {
		return err
	}
	if need := 2*h.MaxBody + zstdMemory; h.signsContent && need >= h.app.MaxBuffered {
		return fmt.Errorf("signed_body decoded: a body and what is in it take up to %d bytes, and max_buffered is %d", need, h.app.MaxBuffered)
	}
	return nil
}

func (h *Handler) setAnswers(sender verify.Sender) error {
	if h.Duplicate == (Reply{}) {
		h.Duplicate = Reply(sender.Duplicate)
	}
	h.Duplicate.Status = or(h.Duplicate.Status, http.StatusOK)
	if h.Duplicate.Status < 200 || h.Duplicate.Status > 299 {
		return fmt.Errorf("duplicate %d: a duplicate is answered with a 2xx, or the sender would never stop", h.Duplicate.Status)
	}
	if h.Duplicate.Body != "" {
		if h.Duplicate.Status == http.StatusNoContent || h.Duplicate.Status == http.StatusResetContent {
			return fmt.Errorf("duplicate %d: an answer with this status has no body", h.Duplicate.Status)
		}
		h.Duplicate.ContentType = or(h.Duplicate.ContentType, "text/plain; charset=utf-8")
	}
	h.RejectStatus = or(h.RejectStatus, http.StatusUnauthorized)
	if h.RejectStatus < 400 || h.RejectStatus > 599 {
		return fmt.Errorf("reject_status %d is not an error", h.RejectStatus)
	}
	return nil
}

func (h *Handler) setMethods(verify.Sender) error {
	if len(h.Methods) == 0 {
		h.Methods = []string{http.MethodPost}
	}
	h.methods = make(map[string]bool)
	for i, m := range h.Methods {
		h.Methods[i] = strings.ToUpper(m)
		h.methods[h.Methods[i]] = true
	}
	return nil
}

// usualWait is how long a copy of a delivery in flight waits by default.
func usualWait(s verify.Sender) time.Duration {
	if s.AttemptTimeout == 0 {
		return defaultWait
	}
	return min(defaultWait, max(0, s.AttemptTimeout/2-500*time.Millisecond))
}

// usualTTL is how long an event is remembered by default, of which a copy may
// come as late as that.
func usualTTL(latest time.Duration) time.Duration { return max(defaultTTL, latest+24*time.Hour) }

// idCounts reports whether the id of a preset alone tells its events apart, by
// default.
func idCounts(s verify.Sender) bool { return s.IDSigned() && !s.IDReused || s.BodyChanges }

// oneOf checks that *value is the usual choice, which an empty one becomes, or
// the other one, and reports whether it is the other.
func oneOf(name string, value *string, usual, other string) (bool, error) {
	*value = or(*value, usual)
	if *value != usual && *value != other {
		return false, fmt.Errorf("%s %q is neither %s nor %s", name, *value, usual, other)
	}
	return *value == other, nil
}

// or returns value, or fallback if value is zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
