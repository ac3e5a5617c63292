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
// the signature, the timestamp and the event id, as far as the scheme has them.
// It uses the first secret, and of alternative schemes the first. It is for
// tests and demonstrations.
func (v *Verifier) Sign(in SignInput) (http.Header, error) {
	if in.Now.IsZero() {
		in.Now = time.Now()
	}
	if v.token != nil {
		return nil, errors.New("this sender's deliveries carry a token, which only its issuer can make")
	}
	c := v.schemes[0]
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
	if c.needsURL && in.URL == "" {
		return nil, errors.New("the scheme signs the URL: give one")
	}
	if c.scheme.Timestamp.set() {
		values.timestamp = formatTime(in.Now, c.scheme.Timestamp.Unit)
	}
	if c.timeHeader != "" {
		h.Set(c.timeHeader, values.timestamp)
	}
	mac := v.keys[0].get(c.payload, &values)
	defer v.keys[0].pool.Put(mac)
	h.Set(c.headers[0], c.signatureValue(mac.sum[:c.size], values.timestamp))
	return h, nil
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
	s := c.prefix + encodeDigest(c.encoding, digest)
	if len(c.labels) > 0 {
		s = c.labels[0] + assign + s
	}
	if c.timeLabel != "" {
		s = strings.Join([]string{c.timeLabel + assign + timestamp, s}, c.separator)
	}
	return s
}
