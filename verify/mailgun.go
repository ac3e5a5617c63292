package verify

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// mailgunForm is how Mailgun signs: the body has a member "signature" with a
// timestamp, a token, and the signature of these two. The rest of the body is
// not signed. Where the event is a subaccount's, a second signature is the main
// account's. (documentation.mailgun.com, "Securing webhooks".)
type mailgunForm struct{ c *compiled }

var mailgunMember = []string{"signature"}

var errMailgunBody = ErrUnsigned.because("the body has no member signature with one timestamp, token and signature")

func (f *mailgunForm) present(*Request) bool { return true }

func (f *mailgunForm) signsBody() bool { return false }

func (f *mailgunForm) signs(idSource) bool { return false }

func (f *mailgunForm) read(r *Request) ([]claim, string, error) {
	block, err := findJSON(r.Body, mailgunMember)
	if err != nil {
		return nil, "", errMailgunBody
	}
	stamp, err1 := textAt(block, "timestamp")
	token, err2 := textAt(block, "token")
	signature, err3 := textAt(block, "signature")
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, "", errMailgunBody
	}
	x := claim{messages: [][]byte{[]byte(stamp + token)}}
	parent, _ := textAt(block, "parent-signature")
	for _, text := range []string{signature, parent} {
		digest := make([]byte, f.c.size)
		if decodeDigest(f.c.encoding, digest, text) {
			x.signatures = append(x.signatures, digest)
		}
	}
	return []claim{x}, stamp, nil
}

// fill implements bodySigner: it replaces the member "signature".
func (f *mailgunForm) fill(body []byte, now time.Time, sign func([]byte) (string, error)) ([]byte, error) {
	old, err := findJSON(body, mailgunMember)
	if err != nil {
		return nil, fmt.Errorf("the body needs a member signature to be filled in: %w", err)
	}
	random := make([]byte, 25)
	rand.Read(random)
	stamp, token := formatTime(now, f.c.scheme.Timestamp.Unit), hex.EncodeToString(random)
	signature, err := sign([]byte(stamp + token))
	if err != nil {
		return nil, err
	}
	return replaced(body, old, fmt.Sprintf(`{"timestamp":%q,"token":%q,"signature":%q}`, stamp, token, signature)), nil
}
