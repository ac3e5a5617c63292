package verify

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"time"
)

// form is how a sender signs where that is more than an HMAC of a template.
type form interface {
	// present reports whether a request has a signature header.
	present(r *Request) bool
	// read returns what the signatures of a request claim, and the signed time as
	// it is written. All claims must hold, and there is at least one.
	read(r *Request) (claims []claim, rawTime string, err error)
	// signsBody reports whether the claims cover all of the body.
	signsBody() bool
	// signs reports whether the claims cover an id where they do not cover all of
	// the body.
	signs(s idSource) bool
}

// bodySigner is a form whose signatures are in the body.
type bodySigner interface {
	// fill returns the body with its signatures.
	fill(body []byte, now time.Time, sign func(message []byte) (string, error)) ([]byte, error)
}

// checkContent refuses a body whose signatures are in it and whose content coding
// makes another body of it: that one holds other ids, and nothing proves them.
func (c *compiled) checkContent(r *Request) error {
	if _, inBody := c.form.(bodySigner); inBody && !bytes.Equal(r.content(), r.Body) {
		return ErrBadID.because("the signatures are in the body as it came, and its Content-Encoding makes another one of it")
	}
	return nil
}

// forms are the ones that presets name.
var forms = map[string]func(*compiled) form{
	"adyen":   func(c *compiled) form { return &adyenForm{c} },
	"mailgun": func(c *compiled) form { return &mailgunForm{c} },
	"twilio":  func(c *compiled) form { return &twilioForm{c} },
}

// claim is that one of the signatures is of one of the messages.
type claim struct {
	messages, signatures [][]byte
}

// holds returns the secret with which the claim holds, or -1.
func (c *compiled) holds(x claim, now time.Time) int {
	for _, k := range c.keys {
		if !k.usable(now) {
			continue
		}
		for _, message := range x.messages {
			if k.signed(message, x.signatures) {
				return k.secret
			}
		}
	}
	return -1
}

// decoded returns the HMACs that were found.
func (s *signatures) decoded(size int) (list [][]byte) {
	for i := range s.n {
		list = append(list, s.digests[i][:size])
	}
	return list
}

// textAt returns the text of a string or a number at a path of a JSON value,
// which is valid and begins with its first byte.
func textAt(value []byte, path ...string) (string, error) {
	value, err := descend(value, path)
	switch {
	case err != nil:
		return "", err
	case value[0] == '"':
		return jsonText(value[1 : len(value)-1])
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
		return string(value), nil
	}
	return "", ErrBadID.because("the member is neither a string nor a number")
}

// replaced puts text in the place of a part of doc.
func replaced(doc, part []byte, text string) []byte {
	start := cap(doc) - cap(part) // both end with the same array
	return slices.Concat(doc[:start], []byte(text), doc[start+len(part):])
}

// digest is the SHA-256 of all that is claimed.
func digest(claims []claim) [32]byte {
	h := sha256.New()
	for _, x := range claims {
		message := x.messages[0]
		h.Write(strconv.AppendInt(nil, int64(len(message)), 10))
		h.Write([]byte{':'})
		h.Write(message)
	}
	return [32]byte(h.Sum(nil))
}

// messageForm is a template that is signed by another algorithm than an HMAC.
// Its message has to be put together in memory.
type messageForm struct{ c *compiled }

func (f *messageForm) present(r *Request) bool { return f.c.extractor.present(r.Header) }

func (f *messageForm) signsBody() bool { return !f.c.static() }

func (f *messageForm) signs(idSource) bool { return false }

func (f *messageForm) read(r *Request) ([]claim, string, error) {
	var found signatures
	if err := f.c.find(r, &found); err != nil {
		return nil, "", err
	}
	values, err := f.c.values(r, found.timestamp)
	if err != nil {
		return nil, "", err
	}
	return []claim{{[][]byte{f.c.payload.bytes(&values)}, found.others}}, values.timestamp, nil
}
