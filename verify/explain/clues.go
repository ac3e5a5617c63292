package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// Clues are what is odd about a delivery at first sight: nothing is hashed, and
// neither secrets nor signatures are looked at.
func Clues(in Input) (found []Finding) {
	add := func(code, format string, args ...any) {
		found = append(found, Finding{code, fmt.Sprintf(format, args...)})
	}
	h := in.Request.Header
	var expected []string
	present := false
	for _, s := range schemes(in.Config) {
		here := false
		for _, name := range s.Headers {
			expected = append(expected, http.CanonicalHeaderKey(name))
			here = here || len(h.Values(name)) > 0
		}
		if here {
			present = true
			timeClue(s, in, add)
		}
	}
	if !present && len(expected) > 0 {
		add("header-missing", "The delivery has no header %s.", strings.Join(slices.Compact(expected), " or "))
		if others := signatureHeaders(h); len(others) > 0 {
			add("header-other", "It has %s.", strings.Join(others, ", "))
		}
	}
	came := in.Request.Body
	if in.Wire != nil {
		came = in.Wire
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		if in.Wire != nil {
			add("body-decoded", "The body is compressed, and what is in it is taken for signed: does the sender sign it as it comes (signed_body wire)?")
		} else if compressed(came) {
			add("body-compressed", "The body is compressed: does the sender sign it before it is (signed_body decoded)?")
		} else {
			add("body-decompressed", "The Content-Encoding header tells of a compressed body, and the body is not compressed: what was signed may be lost.")
		}
	}
	if n := contentLength(h); n >= 0 && n != len(came) {
		add("body-length", "The Content-Length header says %d bytes, and the body has %d.", n, len(came))
	}
	return found
}

// timeClue looks at the time that a delivery claims to be signed at.
func timeClue(s verify.Scheme, in Input, add func(code, format string, args ...any)) {
	var text string
	switch t := s.Timestamp; {
	case t.Header != "":
		if text = in.Request.Header.Get(t.Header); text == "" {
			add("timestamp-missing", "The delivery has no header %s, which holds the time that is signed.", http.CanonicalHeaderKey(t.Header))
			return
		}
	case t.Field != "":
		if text = field(in.Request.Header, s); text == "" {
			add("timestamp-missing", "The signature header has no item `%s`, which holds the time that is signed.", t.Field)
			return
		}
	default:
		return
	}
	unit := s.Timestamp.Unit
	if unit == "" {
		unit = verify.UnixSeconds
	}
	switch found := unitOf(text, in.Now); {
	case found == "":
		add("timestamp-unreadable", "The time that is signed cannot be read in any unit.")
	case found != unit:
		add("timestamp-unit", "The time that is signed is in the unit %s, and %s is expected.", found, unit)
	default:
		age := in.Now.Sub(instant(text, unit))
		if limit := toleranceOf(in.Config); limit > 0 && age.Abs() > limit {
			when := "before"
			if age < 0 {
				when = "after"
			}
			add("timestamp-age", "It claims to have been signed %v %s it arrived.", age.Abs().Round(time.Second), when)
		}
	}
}

// field is the text of the labelled timestamp.
func field(h http.Header, s verify.Scheme) string {
	separator := s.Separator
	if separator == "" {
		separator = ","
	}
	for _, name := range s.Headers {
		for _, line := range h.Values(name) {
			for item := range strings.SplitSeq(line, separator) {
				label, value, found := strings.Cut(strings.TrimSpace(item), "=")
				if found && label == s.Timestamp.Field {
					return value
				}
			}
		}
	}
	return ""
}

func toleranceOf(c verify.Config) time.Duration {
	if c.Tolerance != 0 {
		return c.Tolerance
	}
	if sender, ok := verify.SenderNamed(c.Sender); ok {
		return sender.Tolerance
	}
	return verify.DefaultTolerance
}
