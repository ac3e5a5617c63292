package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/explain"
)

// fromConfig sets up the input for a route of a configuration. The secrets of
// its other routes are tried too. The notes say which secrets cannot be read
// here.
func (x explaining) fromConfig(in *explain.Input) (route *Handler, notes []string, err error) {
	raw, _, _, err := caddycmd.LoadConfig(x.config, x.adapter)
	if err != nil {
		return nil, nil, err
	}
	routes, err := routesOf(raw)
	if err != nil {
		return nil, nil, err
	}
	at, err := x.choose(routes)
	if err != nil {
		return nil, nil, err
	}
	for i, h := range routes {
		secrets, unread := h.savedSecrets()
		if i == at {
			if h.OIDC != nil {
				return nil, nil, errNoToken
			}
			notes = unread
			if in.Config, err = h.verifyConfig(); err != nil {
				return nil, notes, err
			}
			in.Config.Secrets = secrets
			if err = decodeSaved(in, h.SignedBody == "decoded"); err != nil {
				notes = append(notes, "the body cannot be decoded: "+err.Error())
			}
			continue
		}
		for _, s := range secrets {
			in.Others = append(in.Others, explain.OtherSecret{
				Place: fmt.Sprintf("the route %q", h.place()), Secret: verify.Secret{Value: s.Value}, Format: h.SecretFormat,
			})
		}
	}
	return routes[at], notes, nil
}

// errNoToken: an old token is of no use, and what is wrong with a fresh one is in
// the log.
var errNoToken = errors.New("its deliveries carry a token: why one is refused is in the log of the gateway")

// decodeSaved takes the content coding off a saved body, as the gateway does: to
// verify it, or to find the event id in it. A body that was saved decoded stays.
func decodeSaved(in *explain.Input, signed bool) error {
	r, coding := in.Request, codingOf(in.Request.Header)
	content, err := decode(coding, r.Body, defaultMaxBody, func(int64) error { return nil })
	switch {
	case err != nil:
		return err
	case coding == "":
	case signed:
		in.Wire, r.Body = r.Body, content
	default:
		r.Content = content
	}
	return nil
}

// place names a route that need not have been provisioned.
func (h *Handler) place() string {
	switch {
	case h.Source != "":
		return h.Source
	case h.Sender != "":
		return h.Sender
	}
	return customSource
}

// choose returns the index of the route that is meant.
func (x explaining) choose(routes []*Handler) (int, error) {
	var places []string
	chosen := -1
	for i, h := range routes {
		places = append(places, h.place())
		if h.place() == x.route && chosen < 0 {
			chosen = i
		}
	}
	switch {
	case len(routes) == 0:
		return 0, errors.New("the configuration has no webhook_dedupe route")
	case x.route == "" && len(routes) == 1:
		return 0, nil
	case chosen >= 0:
		return chosen, nil
	case x.route == "":
		return 0, fmt.Errorf("the configuration has several routes; choose one with --route: %s", strings.Join(places, ", "))
	}
	return 0, fmt.Errorf("there is no route %q; there are %s", x.route, strings.Join(places, ", "))
}

// routesOf finds all handlers of this module in a configuration, wherever they
// are.
func routesOf(raw []byte) (routes []*Handler, err error) {
	var config any
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if v["handler"] != Handler.CaddyModule(Handler{}).ID.Name() {
				for _, key := range slices.Sorted(maps.Keys(v)) {
					walk(v[key])
				}
				return
			}
			h := new(Handler)
			text, _ := json.Marshal(v)
			if e := json.Unmarshal(text, h); e != nil && err == nil {
				err = fmt.Errorf("a webhook_dedupe handler cannot be read: %w", e)
			}
			routes = append(routes, h)
		}
	}
	walk(config)
	return routes, err
}

// savedSecrets resolves the secrets as far as it can be done here, previous and
// expired ones too.
func (h *Handler) savedSecrets() (secrets []verify.Secret, notes []string) {
	add := func(name string, value string, until time.Time) {
		resolved, err := resolve(value)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s cannot be used: %v", name, err))
			return
		}
		secrets = append(secrets, verify.Secret{Value: resolved, Until: until})
	}
	for i, s := range h.Secrets {
		add(fmt.Sprintf("secret %d", i+1), s, time.Time{})
	}
	for i, p := range h.PreviousSecrets {
		until, _ := time.Parse(time.RFC3339, p.Until) // a wrong one is refused at load
		add(fmt.Sprintf("previous_secret %d", i+1), p.Value, until)
	}
	return secrets, notes
}
