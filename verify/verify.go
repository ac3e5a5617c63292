package verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Verifier checks deliveries against one configuration. It is safe for
// concurrent use.
type Verifier struct {
	schemes     []*compiled   // at least one, each with a key
	token       Authenticator // in the place of signatures; nil: there is none
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
	// Body is the raw body, complete and unchanged: the bytes that are signed.
	Body []byte
	// Content is what ids in JSON are looked for in, if it is not Body: the body
	// without its content coding. Nil: Body.
	Content []byte
}

func (r *Request) content() []byte {
	if r.Content != nil {
		return r.Content
	}
	return r.Body
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
// Of alternative schemes the first with a signature that matches counts. All its
// secrets are tried, and at most 16 signatures of a request, or 4 where they are
// no HMACs.
func (v *Verifier) Verify(r *Request, now time.Time) (Result, error) {
	if v.token != nil {
		return Result{Secret: -1}, v.token.Authenticate(r, now)
	}
	var refused error
	for i, c := range v.schemes {
		if !c.present(r) {
			continue
		}
		res, err := c.prove(r, now)
		if err == nil {
			res.scheme = i
			if err := c.judgeTime(&res, r, v.tolerance, now); err != nil {
				return Result{}, err
			}
			return res, nil
		}
		if refused == nil || Reason(refused) == ErrUnsigned.Reason {
			refused = err
		}
	}
	if refused == nil {
		refused = ErrUnsigned.because("there is no signature header")
	}
	return Result{}, refused
}

// present reports whether a request has a signature of this scheme.
func (c *compiled) present(r *Request) bool {
	if c.form != nil {
		return c.form.present(r)
	}
	return c.extractor.present(r.Header)
}

// prove checks the signatures of a request, but not their time.
func (c *compiled) prove(r *Request, now time.Time) (res Result, err error) {
	if c.form != nil {
		return c.proveForm(r, now)
	}
	var found signatures
	if err := c.find(r, &found); err != nil {
		return res, err
	}
	values, err := c.values(r, found.timestamp)
	if err != nil {
		return res, err
	}
	res.rawTime = values.timestamp
	if res.Secret = c.match(&values, &found, now); res.Secret < 0 {
		return Result{}, ErrForged
	}
	return res, nil
}

func (c *compiled) proveForm(r *Request, now time.Time) (res Result, err error) {
	claims, rawTime, err := c.form.read(r)
	if err != nil {
		return res, err
	}
	for i, x := range claims {
		secret := c.holds(x, now)
		if secret < 0 {
			return Result{}, ErrForged
		}
		if i == 0 {
			res = Result{Secret: secret, rawTime: rawTime}
		}
	}
	return res, nil
}

// find collects the signatures in headers, of which there must be one.
func (c *compiled) find(r *Request, found *signatures) error {
	if err := c.collect(r.Header, found); err != nil {
		return err
	}
	if found.n == 0 {
		return ErrUnsigned.because("the signature header holds no signature in the expected form")
	}
	return nil
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
	if c.timePath != nil && c.needsTime {
		p.timestamp = c.bodyTime(r)
	}
	if p.timestamp == "" && c.needsTime {
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
func (c *compiled) match(values *parts, found *signatures, now time.Time) int {
	matched := -1
	for _, k := range c.keys {
		if !k.usable(now) {
			continue
		}
		d := k.mac.get(c.payload, values)
		for j := range found.n {
			if hmac.Equal(d.sum[:c.size], found.digests[j][:c.size]) && matched < 0 {
				matched = k.secret
			}
		}
		k.mac.pool.Put(d)
	}
	return matched
}

// HasSignature reports whether a request has a signature of some scheme, right
// or wrong.
func (v *Verifier) HasSignature(r *Request) bool {
	return slices.ContainsFunc(v.schemes, func(c *compiled) bool { return c.present(r) })
}

// EventID returns the id of the event that a request carries. Call it only after
// Verify, with its result: before, the body is anybody's. The error is an *Error
// of kind ErrMissingID, ErrAmbiguousID or ErrBadID.
func (v *Verifier) EventID(r *Request, res Result) (ID, error) {
	c := v.schemes[res.scheme]
	if err := c.checkContent(r); err != nil {
		return ID{}, err
	}
	text, key, err := compose(c.eventID, r)
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
	if c.form != nil {
		claims, _, _ := c.form.read(r) // as it was in Verify
		return digest(claims)
	}
	d := digester{Hash: sha256.New()}
	if values, err := c.values(r, res.rawTime); err == nil { // as it was in Verify
		c.payload.writeTo(&d, &values)
	}
	return [32]byte(d.Sum(d.sum[:0]))
}

// BodyDigest tells the bodies of verified requests apart. It is the SHA-256 of
// the body or, where the signature covers what a form says and not how it is
// written, of that.
func (v *Verifier) BodyDigest(r *Request, res Result) [32]byte {
	if _, ok := v.schemes[res.scheme].form.(*twilioForm); ok {
		return v.SignedDigest(r, res)
	}
	return sha256.Sum256(r.Body)
}

// BodyChecksum is like [Verifier.BodyDigest], but costs next to nothing, and tells
// bodies apart only where nobody has made them alike on purpose. It is a CRC-32C.
func (v *Verifier) BodyChecksum(r *Request, res Result) uint32 {
	if _, ok := v.schemes[res.scheme].form.(*twilioForm); ok {
		digest := v.SignedDigest(r, res)
		return crc32.Checksum(digest[:], castagnoli)
	}
	return crc32.Checksum(r.Body, castagnoli)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HasTimestamp reports whether the signature covers the time of the delivery.
func (v *Verifier) HasTimestamp() bool {
	return !slices.ContainsFunc(v.schemes, func(c *compiled) bool { return !c.scheme.Timestamp.set() })
}

// BodySigned reports whether the signature covers the whole body. Where it does
// not, whoever has seen one delivery can send another body with its signature.
func (v *Verifier) BodySigned() bool {
	return v.token == nil && !slices.ContainsFunc(v.schemes, func(c *compiled) bool { return c.form != nil && !c.form.signsBody() })
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
