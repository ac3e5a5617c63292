package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Verifier checks deliveries against one configuration. It is safe for
// concurrent use.
type Verifier struct {
	schemes     []*compiled   // at least one
	token       Authenticator // in the place of signatures; nil: there is none
	keys        []*key
	tolerance   time.Duration // negative: off
	unsignedID  string        // canonical
	url         publicURL
	fingerprint [32]byte
}

// Request is what verification needs of an HTTP request.
type Request struct {
	// Method as received.
	Method string
	// URI is the path and query as received, before any rewrite: "/hook?a=b".
	URI string
	// Header with canonical keys, as net/http makes it.
	Header http.Header
	// Body is the raw body, complete and unchanged.
	Body []byte
}

// Result is what Verify found out about a genuine delivery.
type Result struct {
	// Secret is the index, in the configuration, of the secret that matched; -1
	// where an Authenticator did the work.
	Secret int
	// Timestamp is the signed time. Zero: the scheme signs none, or it could not
	// be read and the tolerance is off.
	Timestamp time.Time

	scheme  int
	rawTime string
}

// Verify checks that a request was signed with one of the secrets and, after
// that, that its signed time is within the tolerance of now. The error is an
// *Error of kind ErrUnsigned, ErrForged or ErrStale, or of kind ErrMissingID or
// ErrAmbiguousID where the signature covers an id of which there is not exactly
// one, or of kind ErrNoKeys where an Authenticator could not do its work.
//
// All secrets are always tried, and at most 16 signatures of a request.
func (v *Verifier) Verify(r *Request, now time.Time) (Result, error) {
	if v.token != nil {
		return Result{Secret: -1}, v.token.Authenticate(r, now)
	}
	i := max(0, slices.IndexFunc(v.schemes, func(c *compiled) bool { return c.present(r.Header) }))
	c := v.schemes[i]
	var found signatures
	if err := c.collect(r.Header, &found); err != nil {
		return Result{}, err
	}
	if found.n == 0 {
		if !c.present(r.Header) {
			return Result{}, ErrUnsigned.because("there is no signature header")
		}
		return Result{}, ErrUnsigned.because("the signature header holds no signature in the expected form")
	}
	values, err := c.values(r, found.timestamp)
	if err != nil {
		return Result{}, err
	}
	secret := v.match(c, &values, &found, now)
	if secret < 0 {
		return Result{}, ErrForged
	}
	res := Result{Secret: secret, scheme: i, rawTime: values.timestamp}
	if c.scheme.Timestamp.set() {
		res.Timestamp, err = checkTime(values.timestamp, c.scheme.Timestamp.Unit, v.tolerance, now)
		if err != nil {
			return Result{}, err
		}
	}
	return res, nil
}

// values gathers what the payload template needs. The timestamp is signed as it
// was written, so it is not parsed here.
func (c *compiled) values(r *Request, labelledTime string) (p parts, err error) {
	p = parts{body: r.Body, method: r.Method, timestamp: labelledTime}
	if c.timeHeader != "" {
		lines := r.Header[c.timeHeader]
		for _, line := range lines {
			if line != lines[0] {
				return p, ErrUnsigned.because("the lines of header " + c.timeHeader + " differ")
			}
			p.timestamp = strings.Trim(line, " \t")
		}
	}
	if p.timestamp == "" && c.scheme.Timestamp.set() {
		return p, ErrUnsigned.because("there is no timestamp")
	}
	if c.needsID {
		if p.id, _, err = c.id.find(r); err != nil {
			return p, err
		}
	}
	if c.needsURL {
		p.urlHead, p.urlTail = c.url.of(r.URI)
	}
	return p, nil
}

// match returns the index of the first secret that made one of the signatures,
// or -1. It takes the same time whichever matches, and if none does.
func (v *Verifier) match(c *compiled, values *parts, found *signatures, now time.Time) int {
	matched := -1
	for i, k := range v.keys {
		if !k.usable(now) {
			continue
		}
		mac := k.get(c.payload, values)
		for j := range found.n {
			if hmac.Equal(mac.sum[:c.size], found.digests[j][:c.size]) && matched < 0 {
				matched = i
			}
		}
		k.pool.Put(mac)
	}
	return matched
}

// EventID returns the id of the event that a request carries. Call it only after
// Verify, with its result: before, the body is anybody's. The error is an *Error
// of kind ErrMissingID, ErrAmbiguousID or ErrBadID.
func (v *Verifier) EventID(r *Request, res Result) (ID, error) {
	text, key, err := compose(v.schemes[res.scheme].eventID, r)
	if err != nil {
		return ID{}, err
	}
	id := ID{Text: printable(text), Key: key}
	if v.unsignedID != "" {
		id.HeaderDiffers = slices.ContainsFunc(r.Header[v.unsignedID], func(s string) bool { return s != text })
	}
	return id, nil
}

// SignedDigest returns the SHA-256 of the bytes that the signature of a verified
// request covers: the same for every copy of these bytes, under whatever id.
func (v *Verifier) SignedDigest(r *Request, res Result) [32]byte {
	c := v.schemes[res.scheme]
	d := digester{Hash: sha256.New()}
	if values, err := c.values(r, res.rawTime); err == nil { // as it was in Verify
		c.payload.writeTo(&d, &values)
	}
	return [32]byte(d.Sum(d.sum[:0]))
}

// HasTimestamp reports whether the signature covers the time of the delivery.
func (v *Verifier) HasTimestamp() bool {
	return !slices.ContainsFunc(v.schemes, func(c *compiled) bool { return !c.scheme.Timestamp.set() })
}

// IDSigned reports whether the signature covers the whole event id.
func (v *Verifier) IDSigned() bool {
	return !slices.ContainsFunc(v.schemes, func(c *compiled) bool { return !c.idSigned })
}

// Tolerance returns the tolerance in force; zero if no timestamp is checked.
func (v *Verifier) Tolerance() time.Duration { return max(v.tolerance, 0) }

// Fingerprint is equal for two verifiers of one process exactly if they have the
// same schemes, secrets and id sources. It is not meant to be logged or stored.
func (v *Verifier) Fingerprint() [32]byte { return v.fingerprint }
