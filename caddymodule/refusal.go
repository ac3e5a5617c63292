package caddymodule

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// refusal is an answer that the gateway makes itself, instead of the upstream.
type refusal struct {
	status int
	// reason is the word for logs and metrics.
	reason string
	// retryAfter is sent along where coming again may help.
	retryAfter time.Duration
	err        error
}

// The reasons of refusals that do not come from package verify.
const (
	reasonMethod     = "method"
	reasonTooLarge   = "too_large"
	reasonIncomplete = "incomplete_body"
	reasonEncoding   = "encoding"
	reasonReplayed   = "replayed"
	reasonBusy       = "busy"
	reasonMemory     = "memory"
	reasonStore      = "store"
)

// unverified is the refusal of a delivery that package verify refused. Only what
// is surely not the sender's gets the route's own status: a stale timestamp may
// be this machine's clock, and must stay retryable; what cannot be checked for the
// moment is asked for again.
func (h *Handler) unverified(err error) *refusal {
	ref := &refusal{reason: verify.Reason(err), err: err, status: http.StatusBadRequest}
	switch {
	case errors.Is(err, verify.ErrNoKeys):
		return unavailable(ref.reason, keysRetry, err)
	case errors.Is(err, verify.ErrStale):
		ref.status = http.StatusUnauthorized
	case errors.Is(err, verify.ErrUnsigned), errors.Is(err, verify.ErrForged):
		ref.status = h.RejectStatus
	}
	return ref
}

func notAllowed() *refusal {
	return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod}
}

// allowed is the Allow header for a request whose method is not allowed: the
// methods of deliveries and of handshakes, without its own, which may be that of
// a handshake that it is not.
func (h *Handler) allowed(method string) string {
	methods := slices.Clone(h.Methods)
	for _, hs := range h.handshakes {
		if hs.method != method && !slices.Contains(methods, hs.method) {
			methods = append(methods, hs.method)
		}
	}
	return strings.Join(methods, ", ")
}

func unread(err error) *refusal {
	var tooLarge errTooLarge
	switch {
	case errors.As(err, new(errUnknownCoding)):
		return &refusal{status: http.StatusUnsupportedMediaType, reason: reasonEncoding, err: err}
	case errors.Is(err, errMalformed):
		return &refusal{status: http.StatusBadRequest, reason: reasonEncoding, err: err}
	case errors.As(err, &tooLarge):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: reasonTooLarge, err: err}
	case errors.Is(err, errNoRoom):
		return unavailable(reasonMemory, soon(), err)
	}
	return &refusal{status: http.StatusBadRequest, reason: reasonIncomplete, err: err}
}

func unavailable(reason string, retryAfter time.Duration, err error) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reason, retryAfter: retryAfter, err: err}
}

// soon is when to come again after an overload: spread, so that a wave of
// retries does not come back as a wave.
func soon() time.Duration { return time.Second + rand.N(9*time.Second) }

// respond writes an answer of the gateway's own. It is never returned as an
// error instead: a site's handle_errors could turn a failure into a 2xx.
func respond(w http.ResponseWriter, status int, retryAfter time.Duration, contentType, body string) {
	h := w.Header()
	h.Del("Content-Encoding")
	h.Del("Etag")
	h.Del("Last-Modified")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if contentType != "" {
		h.Set("Content-Type", contentType)
	} else {
		h["Content-Type"] = nil // nothing to guess from an empty body
	}
	if retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds(retryAfter)))
	}
	w.WriteHeader(status)
	if body != "" {
		_, _ = w.Write([]byte(body))
	}
}

// seconds rounds up, to at least 1.
func seconds(d time.Duration) int { return int(max(time.Second, d+time.Second-1) / time.Second) }
