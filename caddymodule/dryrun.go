package caddymodule

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// passThrough lets a delivery of a dry run go on as if the gateway were not
// there.
func (d *delivery) passThrough() error {
	if d.report.result != resultRejected {
		d.r.Header.Set(resultHeader, string(d.report.result))
		d.w.Header().Set(resultHeader, string(d.report.result))
	}
	return d.next.ServeHTTP(d.w, d.r)
}

// observe lets a claimed delivery of a dry run through and settles its claim by
// what it sees.
func (d *delivery) observe() error {
	underWay.add()
	defer underWay.done()
	defer d.over()
	seen := &observer{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: d.w}}
	if d.SuccessBodyPrefix != "" {
		seen.holds = d.MaxResponse
	}
	e := ending{}
	defer func() {
		if e.panicked = recover(); e.panicked == nil {
			e.answer = answer{status: seen.status, whole: d.r.Context().Err() == nil, wrong: seen.lacks(d.SuccessBodyPrefix, d.r.Method)}
		}
		v := classify(e, d.accepts)
		d.settle(v.outcome)
		d.report.delivered(v)
		if e.panicked != nil {
			panic(e.panicked)
		}
	}()
	e.err = d.next.ServeHTTP(seen, d.r)
	return e.err
}

// observer sees the status that goes by, and the beginning of the body.
type observer struct {
	caddyhttp.ResponseWriterWrapper
	status int
	holds  int64 // how much of the body is held
	body   []byte
}

// lacks reports whether the body does not begin with prefix.
func (o *observer) lacks(prefix, method string) bool {
	return prefix != "" && (bodiless(method, o.status) || !beginsWith(codingOf(o.Header()), o.body, prefix))
}

// WriteHeader implements [http.ResponseWriter].
func (o *observer) WriteHeader(status int) {
	if o.status == 0 && status >= 200 {
		o.status = status
	}
	o.ResponseWriterWrapper.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (o *observer) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	o.body = append(o.body, p[:min(int64(len(p)), o.holds-int64(len(o.body)))]...)
	return o.ResponseWriterWrapper.Write(p)
}

// ReadFrom implements [io.ReaderFrom].
func (o *observer) ReadFrom(r io.Reader) (int64, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	if o.holds > 0 {
		return io.Copy(struct{ io.Writer }{o}, r)
	}
	return o.ResponseWriterWrapper.ReadFrom(r)
}
