package caddymodule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// firstRead is how much is allocated for a body on its sender's word alone.
const firstRead = 16 << 10

// bodyTime is how long a body may take to arrive: longer than any sender's
// attempt, and short enough that slow senders do not fill the memory.
const bodyTime = time.Minute

// limitReading makes reading r's body fail after t, until it is done. A server
// that limits the reading itself is left to that.
func limitReading(w http.ResponseWriter, r *http.Request, server *caddyhttp.Server, t time.Time) *timedBody {
	if r.ContentLength == 0 || server == nil || server.ReadTimeout > 0 {
		return nil
	}
	b := &timedBody{ReadCloser: r.Body, connection: w, until: t, late: server.ReadIdleTimeout <= 0}
	r.Body = b
	return b
}

// timedBody is a body that must have come at a certain time. Most come at once,
// so the connection is told of it only before the second reading; Caddy bounds
// the time of each, unless it is told not to.
type timedBody struct {
	io.ReadCloser
	connection http.ResponseWriter
	until      time.Time
	late       bool // the next reading needs the time limit
	limited    bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.late && !b.limited {
		b.limited = true
		_ = http.NewResponseController(b.connection).SetReadDeadline(b.until) // a writer that cannot: it is not a network's
	}
	b.late = true
	return b.ReadCloser.Read(p)
}

// done lifts the limit, if there is one.
func (b *timedBody) done() {
	if b == nil {
		return
	}
	if b.limited {
		_ = http.NewResponseController(b.connection).SetReadDeadline(time.Time{})
	}
	b.late, b.limited = true, true
}

// writeLimited reports whether the server limits the time for answers itself.
func writeLimited(server *caddyhttp.Server) bool { return server != nil && server.WriteTimeout > 0 }

// serverOf returns the server that r came to, or nil if it came to none of Caddy's.
func serverOf(r *http.Request) *caddyhttp.Server {
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	return server
}

// errTooLarge is a body over the limit.
type errTooLarge struct{ limit int64 }

func (e errTooLarge) Error() string { return fmt.Sprintf("the body is larger than %d bytes", e.limit) }

// readBody reads the whole body, once, up to limit bytes. A body that does not
// come to its end is an error, and what is returned then is only what came:
// nothing may be concluded from it. Before memory is allocated grow is asked for
// it: it grows with what has come, not with what was promised.
func readBody(r *http.Request, limit int64, grow func(int64) error) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge{limit}
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	most := limit + 1 // one more than may come tells that it ends there
	if r.ContentLength > 0 {
		most = r.ContentLength + 1
	}
	body, err := readGrowing(r.Body, most, grow)
	switch {
	case errors.Is(err, errNoRoom):
		return body, err
	case int64(len(body)) > limit, err == nil: // its end may have come with its last byte
		return body, errTooLarge{limit}
	}
	return body, ended(body, err, r.ContentLength)
}

// growth is how much more is allocated than has come: enough that a large body
// is not copied again and again.
const growth = 8

// readGrowing reads to the end or an error of r, which it returns, or until it
// has read most bytes.
func readGrowing(r io.Reader, most int64, grow func(int64) error) (body []byte, err error) {
	for size := min(most, firstRead); ; size = min(most, growth*size) {
		if err := grow(size - int64(len(body))); err != nil {
			return body, err
		}
		body = append(make([]byte, 0, size), body...)
		if body, err = fill(r, body); err != nil || size == most {
			return body, err
		}
	}
}

// fill reads until body is full, or to the end or an error of r.
func fill(r io.Reader, body []byte) ([]byte, error) {
	for len(body) < cap(body) {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			return body, err
		}
	}
	return body, nil
}

// ended says whether a body that ended with err is whole.
func ended(body []byte, err error, length int64) error {
	if errors.Is(err, io.EOF) {
		if length >= 0 && int64(len(body)) != length {
			return fmt.Errorf("incomplete body: %w", io.ErrUnexpectedEOF)
		}
		return nil
	}
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return errTooLarge{tooLarge.Limit}
	}
	return fmt.Errorf("incomplete body: %w", err)
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
// does when a kept connection breaks, if the request has no body and is of a
// method that may be repeated, or carries an idempotency key.
//
// For the method, a body that is empty but there will do. A POST would be sent
// in chunks then; so its key, which Go looks for under its canonical name only,
// goes on under the same name in lower case.
func sendOnce(r *http.Request) {
	if r.ContentLength != 0 {
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		r.Body = io.NopCloser(bytes.NewReader(nil))
		r.ContentLength = -1
		return
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := r.Header[name]; ok {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values
		}
	}
}
