// Package oidc authenticates deliveries by the OpenID Connect token in their
// Authorization header, as Google Cloud Pub/Sub's push subscriptions send it.
package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// The issuer of Google's tokens, in both spellings that it uses, and its keys.
// From developers.google.com/identity, "Verify the Google ID token".
const (
	Google        = "https://accounts.google.com"
	googleOld     = "accounts.google.com"
	GoogleJWKSURL = "https://www.googleapis.com/oauth2/v3/certs"
)

// Config says which tokens are accepted.
type Config struct {
	// Whom the token must be for; any of these, compared exactly. For Google
	// Pub/Sub it is the audience of the push subscription, by default the URL of
	// its endpoint. Required.
	Audience []string `json:"audience,omitempty"`

	// Who must have asked for the token: any of these e-mail addresses, which the
	// issuer must call verified. For Google Pub/Sub it is the service account of
	// the push subscription. Required with Google as the issuer, since anybody can
	// have Google sign a token for any audience. Default: not checked.
	Email []string `json:"email,omitempty"`

	// Who must have signed the token. Default: `https://accounts.google.com`.
	Issuer string `json:"issuer,omitempty"`

	// Where the issuer's public keys are (a JSON Web Key Set): an `https` URL, or
	// an `http` URL of this machine. They are fetched when the first delivery needs
	// them. Required with another issuer than Google. Default:
	// `https://www.googleapis.com/oauth2/v3/certs`.
	JWKSURL string `json:"jwks_url,omitempty"`

	// Warn, if set, is told of every attempt to fetch the keys that failed.
	Warn func(error) `json:"-"`
}

// Authenticator accepts the deliveries whose token a Config describes.
type Authenticator struct {
	config Config
	keys   *keySet
}

// New checks a configuration. It reaches out to nothing.
func New(c Config) (*Authenticator, error) {
	if c.Issuer == "" {
		c.Issuer = Google
	}
	google := c.Issuer == Google || c.Issuer == googleOld
	if c.JWKSURL == "" && google {
		c.JWKSURL = GoogleJWKSURL
	}
	switch {
	case len(c.Audience) == 0:
		return nil, errors.New("audience is required: a token for somebody else must not pass")
	case len(c.Email) == 0 && google:
		return nil, errors.New("email is required: anybody can have Google sign a token for any audience, so only the service account tells whose it is")
	case c.JWKSURL == "":
		return nil, errors.New("jwks_url is required with an issuer that is not Google")
	case slices.ContainsFunc(slices.Concat(c.Audience, c.Email), isBlank):
		return nil, errors.New("an audience or an email is blank")
	}
	if err := checkURL(c.JWKSURL); err != nil {
		return nil, err
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	return &Authenticator{config: c, keys: newKeySet(c.JWKSURL, c.Warn)}, nil
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// checkURL refuses what would let somebody on the way put keys of his own under
// the issuer's name.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("jwks_url is not a URL such as " + GoogleJWKSURL)
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || addr.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return errors.New("jwks_url is not https: whoever is on the way could put keys of his own in the place of the issuer's")
	}
	return nil
}

// algorithms are the signatures that are accepted: asymmetric ones only, so that
// nobody can sign with a public key as if it were a secret.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// maxToken is far above the size of real tokens, which is about 1 KB.
const maxToken = 16 << 10

// Authenticate implements [verify.Authenticator]. It may wait for keys that are
// being fetched, for at most fetchTimeout.
func (a *Authenticator) Authenticate(r *verify.Request, now time.Time) error {
	token, err := bearer(r.Header)
	if err != nil {
		return err
	}
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return refuse(verify.ErrUnsigned, "the token is not a JWT that is signed with RS256 or ES256")
	}
	keys, err := a.keys.find(jws.Signatures[0].Header.KeyID, now)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if payload, err := jws.Verify(key); err == nil {
			return a.check(payload, now)
		}
	}
	return refuse(verify.ErrForged, "the signature of the token is wrong")
}

// bearer returns the token of the request's one Authorization header.
func bearer(h http.Header) (string, error) {
	lines := h["Authorization"]
	switch {
	case len(lines) == 0:
		return "", refuse(verify.ErrUnsigned, "there is no Authorization header")
	case len(lines) > 1:
		return "", refuse(verify.ErrUnsigned, "there are several Authorization headers")
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.Trim(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return "", refuse(verify.ErrUnsigned, "the Authorization header holds no Bearer token")
	case len(token) > maxToken:
		return "", refuse(verify.ErrUnsigned, "the token is too long")
	}
	return token, nil
}

// Identity implements [verify.Authenticator].
func (a *Authenticator) Identity() string {
	c := a.config
	return fmt.Sprintf("oidc %q %q %q %q", c.Issuer, c.JWKSURL, sorted(c.Audience), sorted(c.Email))
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// refuse is an error of a kind. Its detail must hold nothing of the token but
// claims that the issuer has signed.
func refuse(kind *verify.Error, detail string) error {
	return &verify.Error{Reason: kind.Reason, Detail: detail}
}

// Interface guard.
var _ verify.Authenticator = (*Authenticator)(nil)
