package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ID is the id of an event.
type ID struct {
	// Text is for people, logs and headers: one line, the parts of a composite
	// with colons between them, what cannot be printed escaped as in Go.
	Text string
	// Key tells events apart. It is the exact text, save that a JSON string which
	// could be taken for a number begins with a double quote, and that the parts
	// of a composite are each preceded by their length and a colon.
	Key string
	// HeaderDiffers reports that the sender's unsigned copy of the id is another
	// one than the signed id, which is the one that counts.
	HeaderDiffers bool
	// Sum is the SHA-256 of the element that is the event in a batch. Outside of a
	// batch it is zero.
	Sum [sha256.Size]byte
}

// idSource is a checked IDSource.
type idSource struct {
	kind string
	name string   // canonical for a header
	path jsonPath // of FromJSON
}

// find returns the text and the key of the id in a request.
func (s *idSource) find(r *Request) (text, key string, err error) {
	switch s.kind {
	case FromHeader:
		text, err = headerValue(r.Header, s.name)
		return text, text, err
	case FromQuery:
		text, err = queryValue(r.URI, s.name)
		return text, text, err
	case FromForm:
		text, err = formValue(r.Body, s.name)
		return text, text, err
	case FromBodySHA256:
		sum := sha256.Sum256(r.Body)
		text = hex.EncodeToString(sum[:])
		return text, text, nil
	case NoID:
		return "", "", ErrMissingID.because("no event id is taken")
	}
	if s.path.each {
		return "", "", ErrAmbiguousID.because("the body is a batch of events")
	}
	value, err := findJSON(r.content(), s.path.names)
	if err != nil {
		return "", "", err
	}
	return jsonID(value)
}

// idPart is what one source of an id says.
type idPart struct{ text, key string }

// compose finds all sources and joins them.
func compose(sources []idSource, r *Request) (text, key string, err error) {
	if len(sources) == 1 {
		return sources[0].find(r)
	}
	parts := make([]idPart, len(sources))
	for i := range sources {
		if parts[i].text, parts[i].key, err = sources[i].find(r); err != nil {
			return "", "", err
		}
	}
	text, key = joined(parts)
	return text, key, nil
}

// joined is the text and the key of an id of these parts.
func joined(parts []idPart) (text, key string) {
	if len(parts) == 1 {
		return parts[0].text, parts[0].key
	}
	var texts, keys strings.Builder
	for i, p := range parts {
		if i > 0 {
			texts.WriteByte(':')
		}
		texts.WriteString(p.text)
		keys.WriteString(strconv.Itoa(len(p.key)) + ":" + p.key)
	}
	return texts.String(), keys.String()
}

// headerValue returns the one value of a header. Repeated lines must be equal,
// since receivers differ in which line they take. A comma is an ordinary byte.
func headerValue(h http.Header, name string) (string, error) {
	lines := h[name]
	if len(lines) == 0 {
		return "", ErrMissingID.because("there is no header " + name)
	}
	for _, line := range lines[1:] {
		if line != lines[0] {
			return "", ErrAmbiguousID.because("the lines of header " + name + " differ")
		}
	}
	if strings.TrimSpace(lines[0]) == "" {
		return "", ErrMissingID.because("the header " + name + " is blank")
	}
	return lines[0], nil
}

// queryValue is headerValue for a query parameter.
func queryValue(uri, name string) (string, error) {
	_, query, _ := strings.Cut(uri, "?")
	return parameterValue(query, "query parameter", name)
}

// formValue is headerValue for a parameter of a form.
func formValue(body []byte, name string) (string, error) {
	return parameterValue(string(body), "form parameter", name)
}

func parameterValue(query, what, name string) (string, error) {
	value, found := "", false
	for more := query != ""; more; {
		var pair string
		pair, query, more = strings.Cut(query, "&")
		k, v, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(k); err != nil || k != name {
			continue
		}
		v, err := url.QueryUnescape(v)
		if err != nil {
			return "", ErrBadID.because("the " + what + " " + name + " is malformed")
		}
		if found && v != value {
			return "", ErrAmbiguousID.because("the values of " + what + " " + name + " differ")
		}
		value, found = v, true
	}
	if strings.TrimSpace(value) == "" {
		return "", ErrMissingID.because("the " + what + " " + name + " is missing or blank")
	}
	return value, nil
}

// jsonID turns a JSON value into an id. Numbers keep their digits: as floats,
// neighbouring 64-bit ids would become one.
func jsonID(value []byte) (text, key string, err error) {
	switch c := value[0]; {
	case c == '"':
		text, err = jsonText(value[1 : len(value)-1])
		if err == nil && (text[0] == '"' || isInteger(text)) {
			return text, `"` + text, nil // so that "7" is not 7
		}
		return text, text, err
	case c == 'n':
		return "", "", ErrMissingID.because("the member is null")
	case c == '-' || (c >= '0' && c <= '9'):
		text = string(value)
		if !isInteger(text) {
			return "", "", ErrBadID.because("the member is a number with a fraction or an exponent")
		}
		return text, text, nil
	}
	return "", "", ErrBadID.because("the member is neither a string nor an integer")
}

func jsonText(raw []byte) (string, error) {
	text, ok := "", true
	if bytes.IndexByte(raw, '\\') < 0 {
		text = string(raw)
	} else if text, ok = unescape(raw); !ok {
		return "", ErrBadID.because("the member holds half of a surrogate pair")
	}
	if strings.TrimSpace(text) == "" {
		return "", ErrMissingID.because("the member is blank")
	}
	return text, nil
}

// isInteger reports whether s is an integer literal of JSON.
func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s == "0" || (s != "" && s[0] != '0')
}

// printable returns s itself if it is one line of printable text.
func printable(s string) string {
	for i, r := range s {
		if !unicode.IsPrint(r) {
			return escaped(s)
		}
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return escaped(s)
		}
	}
	return s
}

func escaped(s string) string {
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}
