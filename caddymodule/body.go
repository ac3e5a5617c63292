package caddymodule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// firstRead is how much is allocated for a body on its sender's word alone.
const firstRead = 64 << 10

// errTooLarge is a body over the limit.
type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string { return fmt.Sprintf("the body is larger than %d bytes", e.limit) }

// readBody reads the whole body, once, up to limit bytes. A body that does not
// come to its end is an error, and what is returned then is only what came:
// nothing may be concluded from it.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge{limit}
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	// Memory grows with what has come, not with what was promised.
	size := min(max(r.ContentLength, 0)+bytes.MinRead, firstRead)
	buf := bytes.NewBuffer(make([]byte, 0, size))
	_, err := buf.ReadFrom(io.LimitReader(r.Body, limit+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return buf.Bytes(), errTooLarge{tooLarge.Limit}
	case err != nil:
		return buf.Bytes(), fmt.Errorf("incomplete body: %w", err)
	case int64(buf.Len()) > limit:
		return buf.Bytes(), errTooLarge{limit}
	}
	return buf.Bytes(), nil
}

// setBody gives r the body that was read, with its exact length: FastCGI needs
// one. GetBody stays unset, or Go's transport might send a POST twice.
func setBody(r *http.Request, body []byte) {
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	r.Trailer = nil
	r.Header.Del("Trailer")
	r.GetBody = nil
	if len(body) == 0 {
		r.Body = http.NoBody
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// resumeBody puts what was read of a body back in front of the rest, for a
// request that passes unexamined.
func resumeBody(r *http.Request, read []byte) {
	if len(read) == 0 {
		return
	}
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), rest}
}

// sendOnce keeps Go's transport from sending a request twice by itself, as it
// does when a kept connection breaks and the request has no body but carries an
// idempotency key. It looks for the key under its canonical name only; to
// everybody else the case of a header's name means nothing.
func sendOnce(r *http.Request) {
	if r.ContentLength != 0 {
		return
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := r.Header[name]; ok {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}
