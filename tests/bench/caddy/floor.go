package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Floor reads the body and computes its HMAC-SHA256, and nothing else: what no
// gateway of this kind can do without. The benchmarks compare with it.
type Floor struct {
	// Secret is the key.
	Secret string `json:"secret"`
}

func init() {
	caddy.RegisterModule(Floor{})
	httpcaddyfile.RegisterHandlerDirective("floor", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		f := new(Floor)
		if h.Next(); !h.Args(&f.Secret) {
			return nil, h.ArgErr()
		}
		return f, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("floor", httpcaddyfile.Before, "respond")
}

// CaddyModule implements [caddy.Module].
func (Floor) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.floor", New: func() caddy.Module { return new(Floor) }}
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (f *Floor) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.ContentLength < 0 {
		return caddyhttp.Error(http.StatusLengthRequired, errors.New("no Content-Length"))
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return caddyhttp.Error(http.StatusBadRequest, err)
	}
	mac := hmac.New(sha256.New, []byte(f.Secret))
	mac.Write(body)
	mac.Sum(nil)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return next.ServeHTTP(w, r)
}
