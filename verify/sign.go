package verify

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// SignInput is a delivery to be signed.
type SignInput struct {
	// Method of the request. Default: POST.
	Method string
	// URL that the sender was told, in full. Needed where the scheme signs it or
	// takes the event id from its query.
	URL string
	// Body, which carries the event id of senders that put it there.
	Body []byte
	// ID of the event. Needed by senders that put it into a header.
	ID string
	// Now is the time to sign. Default: the current time.
	Now time.Time
}

// Sign returns the headers that the sender would send with a delivery: those of
// the signature, the timestamp and the event id, as far as the scheme has them,
// and the Content-Type if it is a form that is signed.
// It uses the first secret, and of alternative schemes the first. It is for
// tests and demonstrations.
func (v *Verifier) Sign(in SignInput) (http.Header, error) {
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	if v.token != nil {
		return nil, errors.New("this sender's deliveries carry a token, which only its issuer can make")
	}
	c, k := v.first()
	h := make(http.Header)
	if err := c.setID(h, in.ID); err != nil {
		return nil, err
	}
	if v.unsignedID != "" && in.ID != "" {
		h.Set(v.unsignedID, in.ID)
	}
	values := parts{body: in.Body, method: or(in.Method, http.MethodPost), urlHead: in.URL, id: in.ID}
	if c.needsID && c.id.kind == FromQuery {
		var err error
		if values.id, err = queryValue(in.URL, c.id.name); err != nil {
			return nil, err
		}
	}
	if _, ok := c.form.(bodySigner); ok {
		return h, nil // SignBody has signed already
	}
	if c.needsURL && in.URL == "" {
		return nil, errors.New("the scheme signs the URL: give one")
	}
	if c.timePath != nil {
		values.timestamp = c.bodyTime(&Request{Body: in.Body})
	} else if c.scheme.Timestamp.set() {
		values.timestamp = formatTime(in.Now, c.scheme.Timestamp.Unit)
	}
	if c.timeHeader != "" {
		h.Set(c.timeHeader, values.timestamp)
	}
	message := c.payload.bytes(&values)
	if _, ok := c.form.(*twilioForm); ok {
		parameters, err := twilioParameters(in.URL, in.Body)
		if err != nil {
			return nil, err
		}
		message = append([]byte(in.URL), parameters...)
		if len(parameters) > 0 {
			h.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	signature, err := k.sign(message)
	if err != nil {
		return nil, err
	}
	h.Set(c.headers[0], c.signatureValue(signature, values.timestamp))
	return h, nil
}

// SignBody returns the body with what the sender puts into it when it signs: its
// signatures, or the time. For every other sender that is the body itself. Call
// it before Sign. The body must have the members that are to be filled in, as
// SampleBody has.
func (v *Verifier) SignBody(in SignInput) ([]byte, error) {
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	if v.token != nil {
		return in.Body, nil
	}
	c, k := v.first()
	form, ok := c.form.(bodySigner)
	switch {
	case !ok && c.timePath != nil:
		return c.fillTime(in.Body, in.Now)
	case !ok:
		return in.Body, nil
	}
	return form.fill(in.Body, in.Now, func(message []byte) (string, error) {
		signature, err := k.sign(message)
		return encodeDigest(c.encoding, signature), err
	})
}

// first returns the first secret and the first scheme that has it.
func (v *Verifier) first() (*compiled, *key) {
	for _, c := range v.schemes {
		if c.keys[0].secret == 0 {
			return c, c.keys[0]
		}
	}
	return v.schemes[0], v.schemes[0].keys[0]
}

// setID puts the id into the headers that hold it.
func (c *compiled) setID(h http.Header, id string) error {
	sources := c.eventID
	if c.needsID {
		sources = append([]idSource{c.id}, sources...)
	}
	for _, s := range sources {
		if s.kind != FromHeader {
			continue
		}
		if id == "" {
			return errors.New("the event id is in a header: give one")
		}
		h.Set(s.name, id)
	}
	return nil
}

// signatureValue writes a signature as the extractor reads it.
func (c *compiled) signatureValue(digest []byte, timestamp string) string {
	assign := "="
	if c.separator == " " {
		assign = "," // as Standard Webhooks write it
	}
	s := c.prefix
	if c.static() {
		s += string(digest)
	} else {
		s += encodeDigest(c.encoding, digest)
	}
	if len(c.labels) > 0 {
		s = c.labels[0] + assign + s
	}
	if c.timeLabel != "" {
		s = strings.Join([]string{c.timeLabel + assign + timestamp, s}, c.separator)
	}
	return s
}
