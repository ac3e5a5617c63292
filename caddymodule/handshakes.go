package caddymodule

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// noHandshake as the name of a route's handshake takes away the sender's own.
const noHandshake = "none"

// handshakes are all there are, by name. Senders name theirs in [verify.Sender].
//
// Only a receiver answers them, never the gateway. It would have to know what it
// does not (Meta's verify token, what becomes of Asana's secret), and where it
// does know the secret, X shows the danger: its unsigned request asks for the
// HMAC of any text, which is just what signs a delivery.
var handshakes = []handshake{
	// Whoever writes these lets every request of the method through, if it has no
	// body.
	{name: "get", method: http.MethodGet, anyQuery: true, maySign: true},
	{name: "head", method: http.MethodHead, anyQuery: true, maySign: true},

	// Unsigned.
	{name: "asana", method: http.MethodPost, header: "X-Hook-Secret", body: regexp.MustCompile(`^(\{\})?$`)},
	{name: "dropbox", method: http.MethodGet, query: []string{"challenge"}},
	{name: "meta", method: http.MethodGet, query: []string{"hub.mode=subscribe", "hub.challenge", "hub.verify_token"}},
	{name: "microsoft-graph", method: http.MethodPost, query: []string{"validationToken"}},
	{
		name: "monday", method: http.MethodPost, contentType: "application/json?",
		body: regexp.MustCompile(`^\s*\{\s*"challenge"\s*:\s*"[!#-\[\]-~]+"\s*\}\s*$`), // no escapes
	},
	{name: "trello", method: http.MethodHead},
	{
		name: "woocommerce", method: http.MethodPost, contentType: "application/x-www-form-urlencoded",
		without: "X-Wc-Webhook-", body: regexp.MustCompile(`^webhook_id=[0-9]{1,20}$`),
	},
	// X may sign the query, which it alone knows how to check.
	{name: "x-twitter", method: http.MethodGet, query: []string{"crc_token", "nonce?"}, maySign: true},

	// Signed, and without an event id that would be worth remembering.
	// The ping is 1 among interactions and 0 among events, where 1 is every event.
	{name: "discord", method: http.MethodPost, member: "type", values: []string{"0", "1"}, lacks: "event"},
	{name: "line", method: http.MethodPost, member: "events", values: []string{"[]"}},
	{name: "pagerduty", method: http.MethodPost, member: "event.event_type", values: []string{"pagey.ping"}},
	{name: "slack", method: http.MethodPost, member: "type", values: []string{"url_verification"}},
	{name: "xero", method: http.MethodPost, member: "events", values: []string{"[]"}},
	{name: "zoom", method: http.MethodPost, member: "event", values: []string{"endpoint.url_validation"}},
}

// handshakeNamed returns the handshake of that name, in either case.
func handshakeNamed(name string) (*handshake, error) {
	var names []string
	for i := range handshakes {
		if strings.EqualFold(handshakes[i].name, name) {
			return &handshakes[i], nil
		}
		names = append(names, handshakes[i].name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("unknown handshake %q; there are %s, and %s", name, strings.Join(names, ", "), noHandshake)
}

// setHandshakes gathers the sender's handshakes and the route's own.
func (h *Handler) setHandshakes(sender verify.Sender) error {
	names := sender.Handshakes
	switch {
	case strings.EqualFold(h.Handshake, noHandshake):
		names = nil
	case h.Handshake != "":
		names = append(slices.Clone(names), h.Handshake)
	}
	for _, name := range names {
		hs, err := handshakeNamed(name)
		if err != nil {
			return err
		}
		if hs.anyQuery && h.methods[hs.method] {
			return fmt.Errorf("handshake %s: %s is a method of deliveries, which must be signed", hs.name, hs.method)
		}
		h.handshakes = append(h.handshakes, hs)
	}
	if public, err := url.Parse(h.PublicURL); err == nil { // the verifier has checked it
		h.ownQuery = public.Query()
	}
	return nil
}
