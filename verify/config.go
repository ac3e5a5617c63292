package verify

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ToleranceOff as a Config's Tolerance accepts timestamps of any age.
const ToleranceOff time.Duration = -1

// DefaultTolerance is the tolerance of custom schemes that sign a timestamp.
const DefaultTolerance = 5 * time.Minute

// Config is how one route verifies its deliveries.
type Config struct {
	// Sender names a preset. Exactly one of Sender and Scheme is set, unless there
	// is an Authenticator.
	Sender string
	// Scheme is a scheme of one's own.
	Scheme *Scheme
	// Secrets are the keys, any of which may match. At least one, unless there is
	// an Authenticator.
	Secrets []Secret
	// Authenticator proves deliveries in the place of a signature and of secrets.
	// It goes with a sender that is known to need it, or with an EventID alone.
	Authenticator Authenticator
	// SecretFormat is Text, Base64 or Hex. Default: the sender's; else Text.
	SecretFormat string
	// EventID is where the event id is; several sources form a composite id.
	// Default: the sender's.
	EventID []IDSource
	// Tolerance is the accepted age of the signed timestamp, in both directions
	// and inclusive. Negative (ToleranceOff): any age. Zero: the sender's, or
	// DefaultTolerance for a custom scheme.
	Tolerance time.Duration
	// PublicURL is the URL that the sender was told, for schemes that sign {url}.
	// A bare origin is completed by the path and query of the request, a URL with
	// a path and no query by the query.
	PublicURL string
}

// New checks a configuration in full and builds its verifier. Its errors say
// what to change and contain nothing of a secret.
func New(c Config) (*Verifier, error) {
	sender, err := c.sender()
	if err != nil {
		return nil, err
	}
	return newOf(sender, c)
}

// newOf is New for a sender that has the route's overrides already.
func newOf(sender Sender, c Config) (v *Verifier, err error) {
	v = &Verifier{}
	if v.url, err = parsePublicURL(c.PublicURL); err != nil {
		return nil, err
	}
	if err := sender.hasID(); err != nil {
		return nil, err
	}
	same := newIdentity()
	if c.Authenticator != nil {
		if err := v.setAuthenticator(c, sender, same); err != nil {
			return nil, err
		}
		return v, nil
	}
	if err := checkSecrets(sender.Schemes, c.Secrets); err != nil {
		return nil, err
	}
	for _, s := range sender.Schemes {
		if err := v.addScheme(s.withDefaults(), sender, c.Secrets, same); err != nil {
			return nil, err
		}
	}
	if err := v.setTolerance(c, sender); err != nil {
		return nil, err
	}
	if sender.UnsignedIDHeader != "" && len(c.EventID) == 0 {
		v.unsignedID = http.CanonicalHeaderKey(sender.UnsignedIDHeader)
	}
	same.Sum(v.fingerprint[:0])
	return v, nil
}

// addScheme takes up an alternative, if any of the secrets are its.
func (v *Verifier) addScheme(s Scheme, sender Sender, secrets []Secret, same identity) error {
	if !slices.ContainsFunc(secrets, func(secret Secret) bool { return s.owns(secret, sender.Schemes) }) {
		return nil
	}
	c, err := compile(s, sender.idSources(s), v.url)
	if err != nil {
		return err
	}
	var raw []string
	if c.keys, raw, err = keysOf(s, sender, secrets); err != nil {
		return err
	}
	v.schemes = append(v.schemes, c)
	slices.Sort(raw) // the order of secrets makes no difference
	same.addScheme(c)
	same.add(raw)
	return nil
}

// sender returns the preset with the route's overrides, or a nameless sender
// that has the route's own scheme.
func (c *Config) sender() (Sender, error) {
	var s Sender
	switch {
	case c.Sender != "" && c.Scheme != nil:
		return s, errors.New("a sender and a signature scheme of one's own exclude each other")
	case c.Authenticator != nil && c.Scheme != nil:
		return s, errors.New("a token and a signature scheme of one's own exclude each other")
	case c.Authenticator != nil && c.Sender == "":
		s = Sender{}
	case c.Scheme != nil:
		s = Sender{Schemes: []Scheme{*c.Scheme}, SecretFormat: Text, Tolerance: DefaultTolerance}
	case c.Sender != "":
		if err := CheckSender(c.Sender); err != nil {
			return s, err
		}
		s, _ = SenderNamed(c.Sender)
	default:
		return s, errors.New("neither a sender nor a signature scheme is given")
	}
	switch {
	case c.Authenticator == nil && s.Authenticator != "":
		return s, fmt.Errorf("sender %s signs nothing that a secret could check; its deliveries carry a token: give an `%s` block", s.Name, s.Authenticator)
	case c.Authenticator != nil && len(s.Schemes) > 0:
		return s, fmt.Errorf("sender %s signs its deliveries; they carry no token", s.Name)
	}
	s.SecretFormat = or(c.SecretFormat, or(s.SecretFormat, Text))
	if len(c.EventID) > 0 {
		s.EventID = c.EventID
	}
	return s, nil
}

// hasID refuses a sender without an event id for which no choice was made.
func (s Sender) hasID() error {
	if s.NoEventID == "" || len(s.EventID) > 0 {
		return nil
	}
	return fmt.Errorf("sender %s: %s. Write an `event_id` of your own choice, or `event_id none` to verify deliveries and nothing more",
		s.Name, strings.TrimSuffix(s.NoEventID, "."))
}

func (v *Verifier) setTolerance(c Config, sender Sender) error {
	timed := slices.ContainsFunc(v.schemes, func(c *compiled) bool { return c.scheme.Timestamp.set() })
	switch {
	case !timed && c.Tolerance > 0:
		return errors.New("tolerance: the signature covers no timestamp that could be checked")
	case !timed, c.Tolerance < 0:
		v.tolerance = ToleranceOff
	case c.Tolerance > 0:
		v.tolerance = c.Tolerance
	default:
		v.tolerance = sender.Tolerance
	}
	return nil
}

// identity digests what tells two verifiers apart. Its key lives and dies with
// the process, so that a fingerprint gives no hold for guessing a weak secret.
type identity struct{ hash.Hash }

var identityKey = rand.Text()

func newIdentity() identity {
	return identity{hmac.New(sha256.New, []byte(identityKey))}
}

// add writes with %q, which keeps neighbouring values apart.
func (id identity) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(id, "%q\n", v)
	}
}

func (id identity) addScheme(c *compiled) {
	s := c.scheme
	id.add(c.headers, s.Separator, s.Labels, s.Prefix, s.Algorithm, s.Encoding,
		c.payload, s.Timestamp.Field, c.timeHeader, c.timePath, s.Timestamp.Unit, c.id, c.eventID, s.Form)
}
