package caddymodule

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc"
)

// keysRetry is when senders are asked to come again while the keys of an issuer
// cannot be fetched: then the next fetch may be made.
const keysRetry = 10 * time.Second

// parseOIDC parses the oidc block.
func (h *Handler) parseOIDC(d *caddyfile.Dispenser) error {
	if err := none(d); err != nil {
		return err
	}
	h.OIDC = new(oidc.Config)
	text := map[string]*string{"issuer": &h.OIDC.Issuer, "jwks_url": &h.OIDC.JWKSURL}
	list := map[string]*[]string{"audience": &h.OIDC.Audience, "email": &h.OIDC.Email}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name, args := d.Val(), d.RemainingArgs()
		switch {
		case list[name] != nil && len(args) > 0:
			*list[name] = append(*list[name], args...)
		case text[name] != nil && len(args) == 1 && *text[name] == "":
			*text[name] = args[0]
		case list[name] == nil && text[name] == nil:
			return d.Errf("unrecognized oidc subdirective '%s'", name)
		default:
			return d.Err("oidc wants `audience <text...>`, `email <address...>`, `issuer <text>` and `jwks_url <url>`, the last two once")
		}
	}
	return nil
}

// authenticator makes what checks the tokens, with placeholders resolved.
func (h *Handler) authenticator() (*oidc.Authenticator, error) {
	if len(h.Secrets)+len(h.PreviousSecrets) > 0 {
		return nil, errors.New("a token and secrets exclude each other: nothing is signed with a secret")
	}
	c := *h.OIDC
	c.Warn = func(err error) {
		h.logger.Warn("deliveries may have to wait for keys", zap.String("source", h.Source), zap.Error(err))
	}
	var err error
	resolved := func(name, value string) string {
		if value == "" || err != nil {
			return value
		}
		if value, err = resolve(value); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return value
	}
	all := func(name string, values []string) (out []string) {
		for _, v := range values {
			out = append(out, resolved(name, v))
		}
		return out
	}
	c.Issuer, c.JWKSURL = resolved("issuer", c.Issuer), resolved("jwks_url", c.JWKSURL)
	c.Audience, c.Email = all("audience", c.Audience), all("email", c.Email)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	a, err := oidc.New(c)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	return a, nil
}
