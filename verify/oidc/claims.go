package oidc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// leeway is how far the issuer's clock and this one may differ.
const leeway = time.Minute

// claims are what a token says.
type claims struct {
	jwt.Claims
	Email         string          `json:"email"`
	EmailVerified json.RawMessage `json:"email_verified"`
}

// check judges the claims of a token whose signature is right. Who it is from
// and for comes before its times, so that a log can tell forged from stale.
func (a *Authenticator) check(payload []byte, now time.Time) error {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return refuse(verify.ErrForged, "the claims of the token cannot be read")
	}
	forged := func(format string, found string) error {
		return refuse(verify.ErrForged, fmt.Sprintf(format, shortened(found)))
	}
	switch {
	case !a.issuedBy(c.Issuer):
		return forged("the token is of another issuer, %q", c.Issuer)
	case !slices.ContainsFunc(a.config.Audience, c.Audience.Contains):
		return forged("the token is for another audience, %q", strings.Join(c.Audience, " "))
	case len(a.config.Email) == 0:
	case !slices.Contains(a.config.Email, c.Email):
		return forged("the token is of another email, %q", c.Email)
	case string(c.EmailVerified) != "true":
		return forged("the issuer has not verified the email %q of the token", c.Email)
	}
	return c.checkTimes(now)
}

func (a *Authenticator) issuedBy(issuer string) bool {
	return issuer == a.config.Issuer || a.config.Issuer == Google && issuer == googleOld
}

// checkTimes wants an end, in the future, and no beginning that lies there.
func (c *claims) checkTimes(now time.Time) error {
	stale := func(detail string) error {
		err := &verify.Error{Reason: verify.ErrStale.Reason, Detail: detail}
		if c.IssuedAt != nil {
			err.Age = now.Sub(c.IssuedAt.Time())
		}
		return err
	}
	from, until := now.Add(leeway), now.Add(-leeway)
	switch {
	case c.Expiry == nil:
		return refuse(verify.ErrForged, "the token has no end (exp)")
	case c.Expiry.Time().Before(until):
		return stale(fmt.Sprintf("the token expired %v ago", now.Sub(c.Expiry.Time()).Round(time.Second)))
	case c.IssuedAt != nil && c.IssuedAt.Time().After(from), c.NotBefore != nil && c.NotBefore.Time().After(from):
		return stale("the token is from the future: do the clocks agree?")
	}
	return nil
}

// shortened bounds what a stranger's token can put into a log.
func shortened(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
