package verify

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// compiled is a Scheme made ready for requests.
type compiled struct {
	extractor
	scheme     Scheme // with defaults
	keys       []*key
	form       form // nil: an HMAC of the payload, in headers
	payload    payload
	timeHeader string   // canonical; "" if the timestamp is elsewhere or absent
	timePath   []string // of a timestamp in the body
	id         idSource // what {id} stands for
	eventID    []idSource
	url        publicURL
	needsID    bool // the payload has {id}
	needsURL   bool
	needsTime  bool
	idSigned   bool // the whole event id is covered by the signature
	batch      bool // an event id is in every element of an array
	array      []string
}

// compile checks a scheme, whose defaults are written out, and its id sources.
func compile(s Scheme, ids []IDSource, url publicURL) (*compiled, error) {
	c := &compiled{scheme: s, url: url}
	if err := c.setExtractor(s); err != nil {
		return nil, err
	}
	if err := c.setPayload(s); err != nil {
		return nil, err
	}
	if err := c.setTimestamp(s); err != nil {
		return nil, err
	}
	if err := c.setEventID(ids); err != nil {
		return nil, err
	}
	c.needsURL = c.payload.has(partURL) || s.Form == "twilio"
	if c.needsURL && url.text == "" {
		return nil, errors.New("{url} needs public_url; the URL that a client claims cannot be trusted")
	}
	if err := c.setPayloadID(s); err != nil {
		return nil, err
	}
	c.idSigned = !slices.ContainsFunc(c.eventID, func(s idSource) bool { return !c.signs(s) })
	return c, nil
}

func (c *compiled) setExtractor(s Scheme) error {
	hash, isHash := hashes[s.Algorithm]
	algorithm, ok := algorithms[s.Algorithm]
	if !isHash && !ok {
		return fmt.Errorf("unknown algorithm %q; there are %s", s.Algorithm, algorithmNames())
	}
	encoding, ok := encodings[s.Encoding]
	switch {
	case algorithm.Static && s.Encoding != "":
		return fmt.Errorf("encoding: %s compares text as it is; leave the encoding out", s.Algorithm)
	case !algorithm.Static && !ok:
		return fmt.Errorf("unknown encoding %q; there are hex, base64 and base64url", s.Encoding)
	}
	if len(s.Headers) == 0 && s.Form == "" {
		return errors.New("no signature header is given")
	}
	if !algorithm.Static && strings.ContainsFunc(s.Separator, isSignatureByte) {
		return errors.New("separator: it must not contain what signatures are written with")
	}
	for _, label := range append(slices.Clone(s.Labels), s.Timestamp.Field) {
		if strings.ContainsAny(label, "=,/ \t"+s.Separator) {
			return fmt.Errorf("label %q contains a separator", label)
		}
	}
	if slices.Contains(s.Labels, "") {
		return errors.New("a label is empty")
	}
	c.extractor = extractor{
		separator: s.Separator, labels: s.Labels, prefix: s.Prefix,
		timeLabel: s.Timestamp.Field, encoding: encoding, size: hash.size, limit: maxCandidates,
	}
	if !isHash {
		c.algorithm, c.limit = &algorithm, maxOtherCandidates
		c.form = &messageForm{c}
	}
	for _, name := range s.Headers {
		name, err := headerName(name)
		if err != nil {
			return err
		}
		c.headers = append(c.headers, name)
	}
	return nil
}

func isSignatureByte(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("+/=-_", r)
}

func (c *compiled) setPayload(s Scheme) (err error) {
	switch {
	case c.static() && s.Payload != "":
		return fmt.Errorf("payload: %s signs nothing; leave the payload out", s.Algorithm)
	case c.static():
		return nil
	case s.Form != "":
		newForm, ok := forms[s.Form]
		if !ok || s.Payload != "" {
			return fmt.Errorf("form %q is unknown, or has no payload", s.Form)
		}
		c.form = newForm(c)
		return nil
	}
	if c.payload, err = parsePayload(s.Payload); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	c.needsTime = c.payload.has(partTime)
	return nil
}

func (c *compiled) setTimestamp(s Scheme) (err error) {
	t := s.Timestamp
	switch {
	case t.Field != "" && t.Header != "", t.JSON != "" && (t.Field != "" || t.Header != ""):
		return errors.New("timestamp: field, header and json exclude each other")
	case t.set() && c.static():
		return fmt.Errorf("timestamp: %s signs nothing, so anybody could change it unnoticed", s.Algorithm)
	case c.needsTime && !t.set():
		return errors.New("payload: {timestamp} needs a timestamp source")
	case t.set() && !c.needsTime && t.JSON == "":
		return errors.New("timestamp: the payload leaves out {timestamp}, so anybody could change it unnoticed")
	case !t.set():
		return nil
	case t.Unit != UnixSeconds && t.Unit != UnixMillis && t.Unit != RFC3339:
		return fmt.Errorf("timestamp: unknown unit %q; there are unix_s, unix_ms and rfc3339", t.Unit)
	case slices.Contains(s.Labels, t.Field):
		return errors.New("timestamp: its field is a label of signatures as well")
	}
	if t.Header != "" {
		c.timeHeader, err = headerName(t.Header)
	}
	if t.JSON != "" {
		if c.timePath, err = parseSinglePath(t.JSON); err != nil {
			return fmt.Errorf("timestamp: %w", err)
		}
	}
	return err
}

// setPayloadID settles what {id} stands for: the scheme's own header, or the
// one source of the event id.
func (c *compiled) setPayloadID(s Scheme) (err error) {
	if c.needsID = c.payload.has(partID); !c.needsID {
		return nil
	}
	if s.IDHeader != "" {
		c.id, err = compileID(IDSource{FromHeader, s.IDHeader})
		return err
	}
	if c.id = c.eventID[0]; len(c.eventID) > 1 || (c.id.kind != FromHeader && c.id.kind != FromQuery) {
		return errors.New("payload: {id} needs an event_id that is one header or one query parameter")
	}
	return nil
}

// signs reports whether the signature covers what a source reads.
func (c *compiled) signs(s idSource) bool {
	if s.kind != NoID && c.form != nil && !c.form.signsBody() {
		return c.form.signs(s)
	}
	switch s.kind {
	case FromJSON, FromForm, FromBodySHA256, NoID:
		return true // every payload has the body
	case FromQuery:
		if c.needsURL && c.url.takesQuery {
			return true
		}
	}
	return s.kind == c.id.kind && s.name == c.id.name // of {id}, if the payload has it
}

func (c *compiled) setEventID(sources []IDSource) error {
	if len(sources) == 0 {
		return errors.New("no event_id is given")
	}
	for _, source := range sources {
		id, err := compileID(source)
		if err != nil {
			return fmt.Errorf("event_id: %w", err)
		}
		c.eventID = append(c.eventID, id)
	}
	return c.setBatch()
}

func compileID(s IDSource) (idSource, error) {
	switch s.Kind {
	case FromHeader:
		name, err := headerName(s.Name)
		return idSource{kind: s.Kind, name: name}, err
	case FromQuery, FromForm:
		if s.Name == "" {
			return idSource{}, errors.New("a parameter needs a name")
		}
		return idSource{kind: s.Kind, name: s.Name}, nil
	case FromJSON:
		path, err := parsePath(s.Name)
		return idSource{kind: s.Kind, path: path}, err
	case FromBodySHA256:
		if s.Name != "" {
			return idSource{}, errors.New("body_sha256 takes no name")
		}
		return idSource{kind: s.Kind}, nil
	case NoID:
		if s.Name != "" {
			return idSource{}, errors.New("none takes no name")
		}
		return idSource{kind: s.Kind}, nil
	}
	return idSource{}, fmt.Errorf("unknown source %q; there are header, json, query, form, body_sha256 and none", s.Kind)
}

// headerName checks and canonicalises a name. Caddy drops request headers with
// an underscore or a dot, so such a header would never be seen.
func headerName(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("a header needs a name")
	case strings.ContainsAny(name, "_."):
		return "", fmt.Errorf("header %q: Caddy drops headers with `_` or `.` in their names", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }):
		return "", fmt.Errorf("header %q: the name is not valid", name)
	}
	return http.CanonicalHeaderKey(name), nil
}
