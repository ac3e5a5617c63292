package caddymodule

import (
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	webhook_dedupe [<matcher>] [<sender>] {
//		source            <name>
//		secret            <value>
//		previous_secret   <value> [until <time>]
//		ttl               <duration>
//		on_unknown        redeliver|hold
//
//		signature {
//			header        <name...>
//			separator     <text>
//			label         <name...>
//			prefix        <text>
//			algorithm     sha1|sha256|sha512|ed25519|ecdsa_sha256|token
//			encoding      hex|base64|base64url
//			payload       <template>
//			timestamp     field <label> [<unit>] | header <name> [<unit>] | json <path> [<unit>]
//		}
//		oidc {
//			audience      <text...>
//			email         <address...>
//			issuer        <text>
//			jwks_url      <url>
//		}
//		secret_format     text|base64|hex
//		event_id          header <name> | json <path> | query <name> | form <name> | body_sha256 | none
//		tolerance         <duration>|off
//		retry_window      <duration>
//		on_reused_id      forward|duplicate
//		replay_guard      on|off
//		public_url        <url>
//		signed_body       wire|decoded
//
//		lease             <duration>
//		upstream_timeout  <duration>
//		wait              <duration>
//		success           [<status...>] [body_prefix <text>]
//		max_response      <size>
//		max_in_flight     <n>
//
//		duplicate         <status> [<body> [<content-type>]]
//		reject_status     <status>
//		on_store_error    reject|forward
//		methods           <method...>
//		handshake         <name>
//		max_body          <size>
//		log_field         <name> json <path> | <name> header <name>
//		dry_run
//	}
//
// `secret`, `previous_secret`, `event_id` and `log_field` may be repeated. The
// names of handshakes are those of the senders that have one, `get`, `head` and
// `none`.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the directive's name
	if d.NextArg() {
		h.Sender = d.Val()
		if err := verify.CheckSender(h.Sender); err != nil {
			return d.WrapErr(err)
		}
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		name := d.Val()
		parse, known := subdirectives[name]
		if !known {
			return d.Errf("unrecognized subdirective '%s'", name)
		}
		if seen[name] && !repeatable[name] {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		if err := parse(h, d); err != nil {
			return err
		}
	}
	return nil
}

// repeatable are the subdirectives that may be given more than once.
var repeatable = map[string]bool{"secret": true, "previous_secret": true, "event_id": true, "log_field": true}

// subdirectives parse one line or block each. They check the form; what the
// values mean is checked by Provision, for JSON too.
var subdirectives = map[string]func(*Handler, *caddyfile.Dispenser) error{
	"source":           text(func(h *Handler) *string { return &h.Source }),
	"secret":           func(h *Handler, d *caddyfile.Dispenser) error { return one(d, appendTo(&h.Secrets)) },
	"previous_secret":  (*Handler).parsePreviousSecret,
	"ttl":              duration(func(h *Handler) *caddy.Duration { return &h.TTL }),
	"on_unknown":       text(func(h *Handler) *string { return &h.OnUnknown }),
	"signature":        (*Handler).parseSignature,
	"oidc":             (*Handler).parseOIDC,
	"secret_format":    text(func(h *Handler) *string { return &h.SecretFormat }),
	"event_id":         (*Handler).parseEventID,
	"tolerance":        text(func(h *Handler) *string { return &h.Tolerance }),
	"retry_window":     duration(func(h *Handler) *caddy.Duration { return &h.RetryWindow }),
	"on_reused_id":     text(func(h *Handler) *string { return &h.OnReusedID }),
	"replay_guard":     text(func(h *Handler) *string { return &h.ReplayGuard }),
	"public_url":       text(func(h *Handler) *string { return &h.PublicURL }),
	"signed_body":      text(func(h *Handler) *string { return &h.SignedBody }),
	"lease":            duration(func(h *Handler) *caddy.Duration { return &h.Lease }),
	"upstream_timeout": duration(func(h *Handler) *caddy.Duration { return &h.UpstreamTimeout }),
	"wait": duration(func(h *Handler) *caddy.Duration {
		h.Wait = new(caddy.Duration)
		return h.Wait
	}),
	"success":        (*Handler).parseSuccess,
	"max_response":   size(func(h *Handler) *int64 { return &h.MaxResponse }),
	"max_in_flight":  number(func(h *Handler) *int { return &h.MaxInFlight }),
	"duplicate":      (*Handler).parseDuplicate,
	"reject_status":  number(func(h *Handler) *int { return &h.RejectStatus }),
	"on_store_error": text(func(h *Handler) *string { return &h.OnStoreError }),
	"methods":        (*Handler).parseMethods,
	"handshake":      text(func(h *Handler) *string { return &h.Handshake }),
	"max_body":       size(func(h *Handler) *int64 { return &h.MaxBody }),
	"log_field":      (*Handler).parseLogField,
	"dry_run": func(h *Handler, d *caddyfile.Dispenser) error {
		h.DryRun = true
		return none(d)
	},
}

func (h *Handler) parsePreviousSecret(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1:
		h.PreviousSecrets = append(h.PreviousSecrets, PreviousSecret{Value: args[0]})
	case len(args) == 3 && args[1] == "until":
		h.PreviousSecrets = append(h.PreviousSecrets, PreviousSecret{Value: args[0], Until: args[2]})
	default:
		return d.ArgErr()
	}
	return nil
}

func (h *Handler) parseEventID(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == verify.FromBodySHA256 || args[0] == verify.NoID):
		h.EventID = append(h.EventID, verify.IDSource{Kind: args[0]})
	case len(args) == 2 && slices.Contains([]string{verify.FromHeader, verify.FromJSON, verify.FromQuery, verify.FromForm}, args[0]):
		h.EventID = append(h.EventID, verify.IDSource{Kind: args[0], Name: args[1]})
	default:
		return d.Err("event_id wants `header <name>`, `json <path>`, `query <name>`, `form <name>`, `body_sha256` or `none`")
	}
	return nil
}

func (h *Handler) parseSuccess(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if n := len(args); n >= 2 && args[n-2] == "body_prefix" {
		if args[n-1] == "" {
			return d.Err("success: body_prefix is empty")
		}
		h.SuccessBodyPrefix, args = args[n-1], args[:n-2]
	} else if n > 0 && args[n-1] == "body_prefix" {
		return d.Err("success: body_prefix wants a text behind it")
	} else if n == 0 {
		return d.ArgErr()
	}
	for _, arg := range args {
		status, err := strconv.Atoi(arg)
		if err != nil {
			return d.Errf("success %s is not a status", arg)
		}
		h.Success = append(h.Success, status)
	}
	return nil
}

func (h *Handler) parseDuplicate(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 1 || len(args) > 3 {
		return d.ArgErr()
	}
	status, err := strconv.Atoi(args[0])
	if err != nil {
		return d.Errf("duplicate %s is not a status", args[0])
	}
	h.Duplicate.Status = status
	if len(args) > 1 {
		h.Duplicate.Body = args[1]
	}
	if len(args) > 2 {
		h.Duplicate.ContentType = args[2]
	}
	return nil
}

func (h *Handler) parseMethods(d *caddyfile.Dispenser) error {
	h.Methods = d.RemainingArgs()
	if len(h.Methods) == 0 {
		return d.ArgErr()
	}
	return nil
}

func (h *Handler) parseLogField(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 3 {
		return d.ArgErr()
	}
	h.LogFields = append(h.LogFields, LogField{Name: args[0], Kind: args[1], From: args[2]})
	return nil
}

// The forms of a line that holds one value.

func text(field func(*Handler) *string) func(*Handler, *caddyfile.Dispenser) error {
	return func(h *Handler, d *caddyfile.Dispenser) error {
		return one(d, func(s string) error { *field(h) = s; return nil })
	}
}

func duration(field func(*Handler) *caddy.Duration) func(*Handler, *caddyfile.Dispenser) error {
	return func(h *Handler, d *caddyfile.Dispenser) error { return one(d, durationTo(d, field(h))) }
}

func durationTo(d *caddyfile.Dispenser, to *caddy.Duration) func(string) error {
	name := d.Val()
	return func(s string) error {
		parsed, err := caddy.ParseDuration(s)
		if err != nil || parsed < 0 || parsed == 0 && name != "wait" {
			return d.Errf("%s '%s' is not a duration above 0", name, s)
		}
		*to = caddy.Duration(parsed)
		return nil
	}
}

func size(field func(*Handler) *int64) func(*Handler, *caddyfile.Dispenser) error {
	return func(h *Handler, d *caddyfile.Dispenser) error { return one(d, sizeTo(d, field(h))) }
}

func sizeTo(d *caddyfile.Dispenser, to *int64) func(string) error {
	name := d.Val()
	return func(s string) error {
		n, err := humanize.ParseBytes(s)
		if err != nil || n == 0 || n > 1<<40 {
			return d.Errf("%s '%s' is not a size", name, s)
		}
		*to = int64(n)
		return nil
	}
}

func number(field func(*Handler) *int) func(*Handler, *caddyfile.Dispenser) error {
	return func(h *Handler, d *caddyfile.Dispenser) error { return one(d, numberTo(d, field(h))) }
}

func numberTo(d *caddyfile.Dispenser, to *int) func(string) error {
	name := d.Val()
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return d.Errf("%s '%s' is not a number", name, s)
		}
		*to = n
		return nil
	}
}

func appendTo(to *[]string) func(string) error {
	return func(s string) error { *to = append(*to, s); return nil }
}

// one gives the only argument of a line to set.
func one(d *caddyfile.Dispenser, set func(string) error) error {
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.ArgErr()
	}
	return set(args[0])
}

// none checks that a line has no argument.
func none(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// Interface guard.
var _ caddyfile.Unmarshaler = (*Handler)(nil)
