package caddymodule

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// handshake is how a sender asks whether the endpoint is really the receiver's,
// mostly before its first delivery. It carries no event, so it goes to the
// upstream without the store; the answer is the upstream's, unchanged.
//
// A signed one is verified as a delivery is. An unsigned one passes unverified,
// so it must have exactly the shape that is described here, in which a receiver
// can find nothing that it might take for a delivery.
type handshake struct {
	// name is what configurations call it: the sender's, or a method.
	name   string
	method string

	// member and values tell a signed handshake: the value at this path of the JSON
	// body, which for a string is its text, is one of these. lacks is the path of
	// a member that only deliveries have.
	member string
	values []string
	lacks  string

	// What follows tells an unsigned one.

	// query names the parameters, each of which comes once and is not blank; others
	// must not be there, save those that public_url has. "name=value" fixes the
	// value, and "name?" may be missing.
	query []string
	// anyQuery lifts that: whatever the query is.
	anyQuery bool
	// header is one that must be there, in one line that is not blank.
	header string
	// without begins the names of headers that must not be there. Signature headers
	// must not be there either, unless maySign is set.
	without string
	maySign bool
	// contentType is the media type; empty for any and none. "type?" may be missing.
	contentType string
	// body is what the whole body must be; nil for none.
	body *regexp.Regexp
}

// maxHandshakeBody bounds the bodies of unsigned handshakes.
const maxHandshakeBody = 1 << 10

// methodOverrides are headers for which frameworks take a request for one of
// another method, and so of another shape.
var methodOverrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

func (hs *handshake) signed() bool { return hs.member != "" }

// fitsHead reports whether r can be this unsigned handshake, as far as one can
// tell without its body. own are the parameters of the receiver's own URL.
func (hs *handshake) fitsHead(r *http.Request, own url.Values, v *verify.Verifier) bool {
	if hs.signed() || r.Method != hs.method || !hs.maySign && v.HasSignature(&verify.Request{Header: r.Header}) {
		return false
	}
	if lines := r.Header[hs.header]; hs.header != "" && (len(lines) != 1 || strings.TrimSpace(lines[0]) == "") {
		return false
	}
	for _, name := range methodOverrides {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	for name := range r.Header {
		if hs.without != "" && strings.HasPrefix(name, hs.without) {
			return false
		}
	}
	if !hs.fitsType(r.Header.Get("Content-Type")) {
		return false
	}
	return hs.anyQuery || hs.fitsQuery(originalURI(r), own)
}

func (hs *handshake) fitsType(got string) bool {
	want, optional := strings.CutSuffix(hs.contentType, "?")
	if want == "" || optional && got == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(got)
	return err == nil && media == want
}

func (hs *handshake) fitsQuery(uri string, own url.Values) bool {
	_, query, _ := strings.Cut(uri, "?")
	got, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	for name, values := range own {
		if slices.Equal(got[name], values) {
			delete(got, name)
		}
	}
	for _, want := range hs.query {
		name, optional := strings.CutSuffix(want, "?")
		name, value, fixed := strings.Cut(name, "=")
		values := got[name]
		delete(got, name)
		switch {
		case len(values) == 0 && optional:
		case len(values) != 1, strings.TrimSpace(values[0]) == "", fixed && values[0] != value:
			return false
		}
	}
	return len(got) == 0
}

// fitsBody reports whether an unsigned handshake has this body.
func (hs *handshake) fitsBody(body []byte) bool {
	if hs.body == nil {
		return len(body) == 0
	}
	return len(body) <= maxHandshakeBody && hs.body.Match(body)
}

// fitsSigned reports whether a verified body is this handshake.
func (hs *handshake) fitsSigned(method string, body []byte) bool {
	if !hs.signed() || method != hs.method {
		return false
	}
	value, err := verify.JSONValue(body, hs.member)
	if err != nil || !slices.Contains(hs.values, strings.Join(strings.Fields(value), "")) {
		return false
	}
	if hs.lacks == "" {
		return true
	}
	_, err = verify.JSONValue(body, hs.lacks)
	return errors.Is(err, verify.ErrMissingID)
}

// mayBeHandshake reports whether a request can be one of the route's unsigned
// handshakes; its body decides.
func (h *Handler) mayBeHandshake(r *http.Request) bool {
	return slices.ContainsFunc(h.handshakes, func(hs *handshake) bool { return hs.fitsHead(r, h.ownQuery, h.verifier) })
}

// isHandshake reports whether the delivery is an unsigned handshake.
func (d *delivery) isHandshake() bool {
	return slices.ContainsFunc(d.handshakes, func(hs *handshake) bool {
		return hs.fitsBody(d.body) && hs.fitsHead(d.r, d.ownQuery, d.verifier)
	})
}

// isSignedHandshake reports whether the delivery, which is verified, is a
// handshake.
func (d *delivery) isSignedHandshake() bool {
	return slices.ContainsFunc(d.handshakes, func(hs *handshake) bool { return hs.fitsSigned(d.r.Method, d.content) })
}

// passHandshake sends a handshake to the upstream, whose answer it is. It asks
// for no other protocol: a connection that the upstream had switched would carry
// whatever a stranger writes, past the gateway.
func (d *delivery) passHandshake() error {
	d.r.Header.Del("Upgrade")
	d.report.result = resultHandshake
	return d.next.ServeHTTP(d.w, d.r)
}
