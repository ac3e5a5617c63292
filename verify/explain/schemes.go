package explain

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// payloads are the templates that senders use.
var payloads = []string{
	"{body}", "{timestamp}.{body}", "{timestamp}:{body}", "{timestamp}{body}", "{body}{timestamp}",
	"{id}.{timestamp}.{body}", "v0:{timestamp}:{body}", "{timestamp}|{body}", "{timestamp}\n{body}", "{timestamp} {body}",
	"{id}{timestamp}{body}", "{id}.{body}", "{body}.{timestamp}", "{timestamp}-{body}", "{timestamp}_{body}", "{url}{body}", "{body}{url}", "{method}{url}{body}", "{method}{url}{body}{timestamp}",
}

// schemeRepairs are the schemes of all known senders, and those that the headers
// of the delivery look like.
func schemeRepairs(in Input) (rs []repair) {
	for _, name := range verify.Senders() {
		sender, _ := verify.SenderNamed(name)
		if name != in.Config.Sender && len(sender.Schemes) > 0 {
			rs = append(rs, repair{Finding{"sender", "It is signed as " + name + " signs."}, func(a *attempt) {
				if a.config.SecretFormat == "" {
					a.config.SecretFormat = formatOf(in.Config)
				}
				a.config.Sender, a.config.Scheme = name, nil
			}})
		}
	}
	own := schemes(in.Config)
	for _, g := range guesses(in) {
		scheme := g
		code, text := difference(own, scheme)
		if code == "" {
			continue // it is the route's own
		}
		rs = append(rs, repair{Finding{code, text}, func(a *attempt) {
			if a.config.SecretFormat == "" {
				a.config.SecretFormat = formatOf(in.Config)
			}
			a.config.Sender, a.config.Scheme = "", &scheme
		}})
	}
	// What differs in the least comes first.
	slices.SortStableFunc(rs, func(a, b repair) int { return strings.Count(a.Code, ",") - strings.Count(b.Code, ",") })
	return rs
}

// guesses are the schemes that could have made what the headers hold.
func guesses(in Input) (found []verify.Scheme) {
	h := in.Request.Header
	times := append([]verify.Timestamp{{}}, timestampHeaders(h, in.Now)...)
	ids := idHeaders(h)
	for _, s := range signatureShapes(h, in.Now) {
		for _, payload := range payloads {
			sources := times
			if s.Timestamp != (verify.Timestamp{}) {
				sources = append([]verify.Timestamp{s.Timestamp}, times[1:]...)
			}
			if !strings.Contains(payload, "{timestamp}") {
				sources = []verify.Timestamp{{}}
			}
			for _, t := range sources {
				if (t == verify.Timestamp{}) == strings.Contains(payload, "{timestamp}") {
					continue
				}
				g := s
				g.Payload, g.Timestamp = payload, t
				if !strings.Contains(payload, "{id}") {
					found = append(found, g)
					continue
				}
				for _, id := range ids {
					g.IDHeader = id
					found = append(found, g)
				}
			}
		}
	}
	return found
}

// digestSizes tell the algorithm by the size of its digest.
var digestSizes = map[int]string{20: verify.SHA1, 32: verify.SHA256, 64: verify.SHA512}

// digest tells how a text could be a signature.
func digest(s string) (encoding, algorithm string, ok bool) {
	if b, err := hex.DecodeString(s); err == nil && digestSizes[len(b)] != "" {
		return verify.Hex, digestSizes[len(b)], true
	}
	if b, err := base64.StdEncoding.DecodeString(s); err == nil && digestSizes[len(b)] != "" {
		return verify.Base64, digestSizes[len(b)], true
	}
	if b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "=")); err == nil && digestSizes[len(b)] != "" {
		return verify.Base64URL, digestSizes[len(b)], true
	}
	return "", "", false
}

// shape is what may stand before a signature: a label or a prefix.
var shape = regexp.MustCompile(`^([A-Za-z0-9_-]{1,12})([=,:/])(.*)$`)

// signatureShapes are how the headers could be read as signatures; payload and,
// for most, the timestamp are open.
func signatureShapes(h http.Header, now time.Time) (found []verify.Scheme) {
	for _, name := range names(h) {
		if strings.ContainsAny(name, "_.") {
			continue
		}
		value := h.Get(name)
		for _, separator := range []string{";", " "} { // before the comma, which is also behind a label
			if strings.Contains(value, separator) && !strings.Contains(value, ","+separator) {
				found = append(found, shapesOf(name, value, separator, now)...)
			}
		}
		found = append(found, shapesOf(name, value, ",", now)...)
	}
	return found
}

// shapesOf reads a header as a list with this separator.
func shapesOf(name, value, separator string, now time.Time) (found []verify.Scheme) {
	items := strings.Split(value, separator)
	list := len(items) > 1
	var t verify.Timestamp
	for _, item := range items {
		item = strings.TrimSpace(item)
		s := verify.Scheme{Headers: []string{name}}
		if list {
			s.Separator = separator
		}
		var ok bool
		if s.Encoding, s.Algorithm, ok = digest(item); ok {
			found = append(found, s)
			continue
		}
		m := shape.FindStringSubmatch(item)
		if m == nil {
			continue
		}
		if unit := unitOf(m[3], now); unit != "" {
			t = verify.Timestamp{Field: m[1], Unit: unit}
			continue
		}
		if s.Encoding, s.Algorithm, ok = digest(m[3]); !ok {
			continue
		}
		if s.Prefix = m[1] + m[2]; list && m[2] != ":" {
			s.Prefix, s.Labels, s.Timestamp = "", []string{m[1]}, t
		}
		found = append(found, s)
	}
	return found
}

// unitOf is the unit in which s is a time within some years of now, or "".
func unitOf(s string, now time.Time) string {
	const years = 10 * 366 * 24 * time.Hour
	if t, err := time.Parse(time.RFC3339, s); err == nil && now.Sub(t).Abs() < years {
		return verify.RFC3339
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || s[0] < '0' || s[0] > '9':
		return ""
	case now.Sub(time.Unix(n, 0)).Abs() < years:
		return verify.UnixSeconds
	case now.Sub(time.UnixMilli(n)).Abs() < years:
		return verify.UnixMillis
	}
	return ""
}

// instant is the time that s says in a unit in which it can be read.
func instant(s, unit string) time.Time {
	if unit == verify.RFC3339 {
		t, _ := time.Parse(time.RFC3339, s)
		return t
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	if unit == verify.UnixMillis {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

func timestampHeaders(h http.Header, now time.Time) (found []verify.Timestamp) {
	for _, name := range names(h) {
		if unit := unitOf(h.Get(name), now); unit != "" && !strings.ContainsAny(name, "_.") {
			found = append(found, verify.Timestamp{Header: name, Unit: unit})
		}
	}
	return found
}

// idHeaders are headers that may hold the id of the delivery.
func idHeaders(h http.Header) (found []string) {
	for _, name := range names(h) {
		lower := strings.ToLower(name)
		if (strings.HasSuffix(lower, "id") || strings.Contains(lower, "delivery")) && !strings.ContainsAny(name, "_.") {
			found = append(found, name)
		}
	}
	return found
}

// signatureHeaders are the headers of a request that hold signatures of a known
// sender, each with the senders that use it, or look like it. Their names are
// the client's: they are bounded.
func signatureHeaders(h http.Header) (found []string) {
	const most, longest = 5, 64
	users := map[string][]string{}
	for _, sender := range verify.Senders() {
		s, _ := verify.SenderNamed(sender)
		for _, scheme := range s.Schemes {
			for _, name := range scheme.Headers {
				name = http.CanonicalHeaderKey(name)
				if !slices.Contains(users[name], sender) {
					users[name] = append(users[name], sender)
				}
			}
		}
	}
	for _, name := range names(h) {
		lower := strings.ToLower(name)
		switch {
		case len(found) == most || len(name) > longest:
		case len(users[name]) > 0:
			found = append(found, name+" (a header of "+strings.Join(users[name], ", ")+")")
		case strings.Contains(lower, "signature"), strings.Contains(lower, "hmac"):
			found = append(found, name)
		}
	}
	return found
}

func names(h http.Header) (found []string) {
	for name := range h {
		found = append(found, http.CanonicalHeaderKey(name))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// difference says how a scheme differs from the nearest of a route's own.
func difference(own []verify.Scheme, s verify.Scheme) (code, text string) {
	best := 100
	for _, o := range own {
		codes, texts := differences(o, s)
		if len(codes) < best {
			best = len(codes)
			code, text = strings.Join(codes, ","), strings.Join(texts, " ")
		}
	}
	if best == 100 {
		code, text = "scheme", fmt.Sprintf("It is signed over %s with %s, as %s in the header %s.", s.Payload, s.Algorithm, s.Encoding, s.Headers[0])
	}
	return code, text
}

func differences(o, s verify.Scheme) (codes, texts []string) {
	differ := func(differs bool, code, format string, args ...any) {
		if differs {
			codes, texts = append(codes, code), append(texts, fmt.Sprintf(format, args...))
		}
	}
	own := o
	for i := range own.Headers {
		own.Headers = slices.Clone(own.Headers)
		own.Headers[i] = http.CanonicalHeaderKey(own.Headers[i])
	}
	or := func(s, fallback string) string {
		if s == "" {
			return fallback
		}
		return s
	}
	differ(!slices.Contains(own.Headers, s.Headers[0]), "header", "The signature is in the header %s.", s.Headers[0])
	differ(or(own.Payload, "{body}") != s.Payload, "payload", "What is signed is %s.", s.Payload)
	differ(or(own.Algorithm, verify.SHA256) != s.Algorithm, "algorithm", "The algorithm is %s.", s.Algorithm)
	differ(or(own.Encoding, verify.Hex) != s.Encoding, "encoding", "The signature is written in %s.", s.Encoding)
	differ(strings.Join(own.Labels, " ") != strings.Join(s.Labels, " ") && !(len(s.Labels) == 1 && slices.Contains(own.Labels, s.Labels[0])),
		"label", "The label of the signature is %s.", named(strings.Join(s.Labels, " ")))
	differ(own.Prefix != s.Prefix, "prefix", "The fixed text before the signature is %s.", named(s.Prefix))
	differ(s.Separator != "" && or(own.Separator, ",") != s.Separator, "separator", "The header holds a list, with the separator `%s`.", s.Separator)
	t := own.Timestamp
	differ(t.Field != s.Timestamp.Field || http.CanonicalHeaderKey(t.Header) != s.Timestamp.Header, "timestamp", "The timestamp is in %s.", placeOf(s.Timestamp))
	differ(s.Timestamp.Unit != "" && t != (verify.Timestamp{}) && or(t.Unit, verify.UnixSeconds) != s.Timestamp.Unit, "unit", "The unit of the timestamp is %s.", s.Timestamp.Unit)
	return codes, texts
}

// named quotes what may not be there.
func named(s string) string {
	if s == "" {
		return "none"
	}
	return "`" + s + "`"
}

func placeOf(t verify.Timestamp) string {
	switch {
	case t.Header != "":
		return "the header " + t.Header
	case t.Field != "":
		return "the field `" + t.Field + "` of the signature header"
	}
	return "no place: none is signed"
}
