package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// Floor reads the body and computes its HMAC-SHA256, and nothing else: what no
// gateway of this kind can do without. With a Redis it asks that, too, before and
// after the handlers behind it. Nothing is checked, and nothing that fails is
// taken care of. The benchmarks compare with it.
type Floor struct {
	// Secret is the key.
	Secret string `json:"secret"`
	// Redis is the address of a server. Default: none.
	Redis string `json:"redis,omitempty"`

	store *redisstore.Store
	times *dedupe.Deadlines
	token atomic.Uint64
}

func init() {
	caddy.RegisterModule((*Floor)(nil))
	httpcaddyfile.RegisterHandlerDirective("floor", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		f := new(Floor)
		if h.Next(); !h.Args(&f.Secret) {
			return nil, h.ArgErr()
		}
		if h.Args(&f.Redis); h.NextArg() {
			return nil, h.ArgErr()
		}
		return f, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("floor", httpcaddyfile.Before, "respond")
}

// CaddyModule implements [caddy.Module].
func (*Floor) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.floor", New: func() caddy.Module { return new(Floor) }}
}

// Provision implements [caddy.Provisioner].
func (f *Floor) Provision(caddy.Context) (err error) {
	if f.Redis != "" {
		f.times = dedupe.NewDeadlines(time.Second)
		f.store, err = redisstore.New(redisstore.Options{Addresses: []string{f.Redis}})
	}
	return err
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
	if f.store == nil {
		return next.ServeHTTP(w, r)
	}
	const ttl = time.Hour
	key := dedupe.Key("floor", r.Header.Get("X-GitHub-Delivery"), "")
	hold := dedupe.Hold{Token: strconv.FormatUint(f.token.Add(1), 36), Lease: time.Minute, TTL: ttl}
	record, err := f.store.Claim(f.times.Next(), key, hold, false)
	switch {
	case err != nil:
		return err
	case record.State == dedupe.Completed:
		w.Header().Set("Webhook-Dedupe", "duplicate")
		w.WriteHeader(http.StatusOK)
		return nil
	}
	err = next.ServeHTTP(w, r)
	return errors.Join(err, f.store.Complete(f.times.Next(), key, dedupe.Done{TTL: ttl}))
}
