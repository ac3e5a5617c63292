// Package explain finds out why a delivery does not verify. It tries what
// usually goes wrong with webhook signatures, one change and then two at a time,
// and names the change with which the signature matches. It is for people at a
// terminal: it may try thousands of signatures.
//
// What it says holds no secret, no signature and nothing of the body.
package explain

import (
	"errors"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// Input is a delivery that is to be explained.
type Input struct {
	// Config is how the route verifies its deliveries. Its secrets may be as they
	// were found: with white space around them, for one.
	Config verify.Config
	// Request is the delivery as it was saved.
	Request *verify.Request
	// Wire is the body as it came, where that of Request is what was in it
	// (signed_body decoded). Nil: it is the same.
	Wire []byte
	// Now is when the delivery arrived.
	Now time.Time
	// Others are secrets that are known and belong elsewhere, such as those of the
	// other routes of a configuration.
	Others []OtherSecret
}

// OtherSecret is a secret of another place.
type OtherSecret struct {
	// Place names it: `the route "shop"`.
	Place string
	verify.Secret
	// Format of the secret there. Empty: that of the route.
	Format string
}

// Report is what was found out.
type Report struct {
	// Verified tells that the delivery is genuine and in time.
	Verified bool
	// Secret is the index of the secret that matched, if it verified.
	Secret int
	// Timestamp is the signed time; zero if none is signed.
	Timestamp time.Time
	// EventIDs are the ids of the events; IDError is why there is none.
	EventIDs []verify.ID
	IDError  error
	// Reason is why the delivery is refused: an error of package verify, or of
	// the configuration itself.
	Reason error
	// Clues are what is odd about the delivery at first sight.
	Clues []Finding
	// Repairs are changes with which the signature matches, each by itself. The
	// likeliest comes first. Empty with a Reason: nothing that was tried helps.
	Repairs []Finding
	// Tried is how many combinations of changes were tried.
	Tried int
}

// Finding is one thing that was found out.
type Finding struct {
	// Code is a stable word, such as `body-line-end`.
	Code string
	// Text says it in a sentence.
	Text string
}

// Explain judges a delivery and, if it is refused, looks for the reason.
func Explain(in Input) Report {
	var rep Report
	a := attempt{config: in.Config, request: in.Request}
	v, err := verify.New(in.Config)
	if err == nil {
		rep.judge(v, in)
	} else {
		rep.Reason = err
	}
	if rep.Verified {
		return rep
	}
	rep.Clues = Clues(in)
	if errors.Is(rep.Reason, verify.ErrStale) || a.matches(in.Now) {
		return rep // the signature is right: the reason says what is wrong
	}
	s := search{now: in.Now, base: a, budget: budget}
	rep.Repairs = s.run(repairs(in))
	rep.Tried = s.tried
	return rep
}

func (rep *Report) judge(v *verify.Verifier, in Input) {
	res, err := v.Verify(in.Request, in.Now)
	if err != nil {
		rep.Reason = err
		return
	}
	rep.Verified, rep.Secret, rep.Timestamp = true, res.Secret, res.Timestamp
	rep.EventIDs, rep.IDError = v.EventIDs(in.Request, res)
}

// attempt is one combination of a configuration and a request.
type attempt struct {
	config  verify.Config
	request *verify.Request
}

// matches reports whether the signature is right, whatever the time.
func (a attempt) matches(now time.Time) bool {
	c := withChoice(a.config)
	c.Tolerance = verify.ToleranceOff
	v, err := verify.New(c)
	if err != nil {
		return false
	}
	_, err = v.Verify(a.request, now)
	return err == nil
}

// withChoice chooses an event id where the route has to and does not. It makes no
// difference to a signature.
func withChoice(c verify.Config) verify.Config {
	sender, _ := verify.SenderNamed(c.Sender)
	if len(c.EventID) == 0 && (c.Scheme != nil || sender.NoEventID != "") {
		c.EventID = []verify.IDSource{{Kind: verify.FromBodySHA256}}
	}
	return c
}

// withBody returns a copy of the request with another body.
func withBody(r *verify.Request, body []byte) *verify.Request {
	changed := *r
	changed.Body = body
	return &changed
}

// schemes are those of a configuration.
func schemes(c verify.Config) []verify.Scheme {
	if c.Scheme != nil {
		return []verify.Scheme{*c.Scheme}
	}
	sender, _ := verify.SenderNamed(c.Sender)
	return sender.Schemes
}
