package verify

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// twilioForm is how Twilio signs: the URL, and behind it the names and values of
// the form's parameters, sorted, with nothing between them. A body that is no
// form has its SHA-256 in the query of the URL instead. Whether a port in the
// URL is signed varies, so both are tried. (twilio/twilio-node,
// src/webhooks/webhooks.ts; twilio/twilio-python, twilio/request_validator.py.)
type twilioForm struct{ c *compiled }

const (
	// maxParameters and maxForm bound what is sorted before it is proven. Twilio's
	// forms have some dozens of parameters, and texts of 1600 characters.
	maxParameters = 1000
	maxForm       = 1 << 20

	bodyHashName = "bodySHA256"
)

func (f *twilioForm) present(r *Request) bool { return f.c.extractor.present(r.Header) }

func (f *twilioForm) signsBody() bool { return true }

func (f *twilioForm) signs(idSource) bool { return false }

func (f *twilioForm) read(r *Request) ([]claim, string, error) {
	var found signatures
	if err := f.c.find(r, &found); err != nil {
		return nil, "", err
	}
	head, tail := f.c.url.of(r.URI)
	signedURL := head + tail
	parameters, err := twilioParameters(signedURL, r.Body)
	if err != nil {
		return nil, "", err
	}
	x := claim{signatures: found.decoded(f.c.size)}
	for _, u := range withAndWithoutPort(signedURL) {
		x.messages = append(x.messages, slices.Concat([]byte(u), parameters))
	}
	return []claim{x}, "", nil
}

// twilioParameters returns what is signed behind the URL. Only the signed URL is
// asked for the hash of a body: another one could be anybody's.
func twilioParameters(signedURL string, body []byte) ([]byte, error) {
	if want, ok := bodyHash(signedURL); ok {
		sum := sha256.Sum256(body)
		if subtle.ConstantTimeCompare([]byte(want), hex.AppendEncode(nil, sum[:])) != 1 {
			return nil, ErrForged.because("the body is not the one whose SHA-256 is in the URL")
		}
		return nil, nil
	}
	if len(body) > maxForm {
		return nil, ErrForged.because("the body is too long for a form, and its SHA-256 is not in the URL")
	}
	list, ok := parseForm(body)
	if !ok {
		return nil, ErrForged.because("the form has too many parameters")
	}
	slices.SortFunc(list, func(a, b parameter) int {
		if c := bytes.Compare(a.name, b.name); c != 0 {
			return c
		}
		return bytes.Compare(a.value, b.value)
	})
	list = slices.CompactFunc(list, func(a, b parameter) bool { return bytes.Equal(a.name, b.name) && bytes.Equal(a.value, b.value) })
	var signed []byte
	for _, p := range list {
		signed = append(append(signed, p.name...), p.value...)
	}
	return signed, nil
}

// bodyHash returns the first bodySHA256 of a query.
func bodyHash(url string) (string, bool) {
	_, query, _ := strings.Cut(url, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if value, ok := strings.CutPrefix(pair, bodyHashName+"="); ok {
			return value, true
		}
	}
	return "", false
}

// withAndWithoutPort returns a URL as it is, and with its port added or removed.
func withAndWithoutPort(text string) []string {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, tail := rest[:end], rest[end:]
	if u := (&url.URL{Host: host}); u.Port() != "" {
		return []string{text, scheme + "://" + strings.TrimSuffix(host, ":"+u.Port()) + tail}
	}
	port := ":443"
	if scheme == "http" {
		port = ":80"
	}
	return []string{text, scheme + "://" + host + port + tail}
}

// parameter is a parameter of a form, decoded.
type parameter struct{ name, value []byte }

// parseForm reads a form as the receivers of forms do: what is no valid escape
// stands for itself, and nothing is left out but empty pieces. It is false if
// there are too many parameters.
func parseForm(body []byte) (list []parameter, ok bool) {
	if bytes.Count(body, []byte{'&'}) >= maxParameters {
		return nil, false
	}
	for piece := range bytes.SplitSeq(body, []byte{'&'}) {
		if len(piece) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(piece, []byte{'='})
		list = append(list, parameter{unescapeForm(name), unescapeForm(value)})
	}
	return list, true
}

func unescapeForm(s []byte) []byte {
	if bytes.IndexByte(s, '%') < 0 && bytes.IndexByte(s, '+') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		var b [1]byte
		switch {
		case s[i] == '+':
			out = append(out, ' ')
		case s[i] == '%' && i+2 < len(s) && decodes(b[:], s[i+1:i+3]):
			out = append(out, b[0])
			i += 2
		default:
			out = append(out, s[i])
		}
	}
	return out
}

func decodes(dst, digits []byte) bool {
	_, err := hex.Decode(dst, digits)
	return err == nil
}
