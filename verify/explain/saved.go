package explain

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// ParseRequest reads a request as it went over the wire or as tools dump it: a
// request line, which may be missing, header lines, an empty line, and the body,
// byte for byte. Lines may end in LF or CR LF.
func ParseRequest(dump []byte) (*verify.Request, error) {
	r := &verify.Request{Method: http.MethodPost, URI: "/", Header: http.Header{}}
	for number := 1; ; number++ {
		line, rest, more := bytes.Cut(dump, []byte("\n"))
		dump = rest
		text := strings.TrimSuffix(string(line), "\r")
		switch {
		case text == "" && number > 1, text == "" && !more:
			r.Body = dump
			return r, nil
		case number == 1 && setRequestLine(r, text):
		default:
			if err := addHeader(r.Header, text); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
		if !more {
			return r, nil
		}
	}
}

// setRequestLine reads `POST /hook?a=b HTTP/1.1`.
func setRequestLine(r *verify.Request, line string) bool {
	words := strings.Fields(line)
	if len(words) < 2 || len(words) > 3 || strings.HasSuffix(words[0], ":") || words[0] != strings.ToUpper(words[0]) {
		return false
	}
	if len(words) == 3 && !strings.HasPrefix(words[2], "HTTP/") {
		return false
	}
	r.Method, r.URI = words[0], words[1]
	return true
}

// addHeader reads a header line. Its text is not quoted in errors: it may be the
// body, or a secret.
func addHeader(h http.Header, line string) error {
	name, value, found := strings.Cut(line, ":")
	if !found || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		return errors.New("it is no header, `Name: value`; an empty line ends the headers")
	}
	h.Add(name, strings.Trim(value, " \t"))
	return nil
}
