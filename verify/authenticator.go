package verify

import (
	"errors"
	"time"
)

// Authenticator proves that a delivery is genuine without a shared secret: by a
// token in a header, say. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns nil for a genuine delivery. Otherwise the error is an
	// *Error of kind ErrUnsigned, ErrForged, ErrStale or ErrNoKeys.
	Authenticate(r *Request, now time.Time) error
	// Identity is the same for two that accept the same deliveries. It goes into
	// the Fingerprint.
	Identity() string
}

// setAuthenticator completes a verifier that has no signatures. The token covers
// neither the id nor the body: that they belong to it is what the connection is
// trusted for.
func (v *Verifier) setAuthenticator(c Config, sender Sender, same identity) error {
	if len(c.Secrets) > 0 || c.SecretFormat != "" {
		return errors.New("a token and secrets exclude each other: nothing is signed with a secret")
	}
	ids := new(compiled)
	if err := ids.setEventID(sender.EventID); err != nil {
		return err
	}
	v.token, v.schemes = c.Authenticator, []*compiled{ids}
	same.add(v.token.Identity(), ids.eventID)
	same.Sum(v.fingerprint[:0])
	return v.setTolerance(c, sender)
}
