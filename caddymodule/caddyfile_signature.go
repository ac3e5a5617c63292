package caddymodule

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// parseSignature parses the signature block.
func (h *Handler) parseSignature(d *caddyfile.Dispenser) error {
	if err := none(d); err != nil {
		return err
	}
	h.Signature = new(verify.Scheme)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := parseSignatureLine(h.Signature, d); err != nil {
			return err
		}
	}
	return nil
}

func parseSignatureLine(s *verify.Scheme, d *caddyfile.Dispenser) error {
	to := func(field *string) error {
		return one(d, func(v string) error { *field = v; return nil })
	}
	list := func(field *[]string) error {
		if *field = d.RemainingArgs(); len(*field) == 0 {
			return d.ArgErr()
		}
		return nil
	}
	switch d.Val() {
	case "header":
		return list(&s.Headers)
	case "separator":
		return to(&s.Separator)
	case "label":
		return list(&s.Labels)
	case "prefix":
		return to(&s.Prefix)
	case "algorithm":
		return to(&s.Algorithm)
	case "encoding":
		return to(&s.Encoding)
	case "payload":
		return to(&s.Payload)
	case "timestamp":
		return parseTimestamp(&s.Timestamp, d)
	}
	return d.Errf("unrecognized signature subdirective '%s'", d.Val())
}

func parseTimestamp(t *verify.Timestamp, d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 2 || len(args) > 3 {
		return d.Err("timestamp wants `field <label> [<unit>]`, `header <name> [<unit>]` or `json <path> [<unit>]`")
	}
	switch strings.ToLower(args[0]) {
	case "field":
		t.Field = args[1]
	case "header":
		t.Header = args[1]
	case "json":
		t.JSON = args[1]
	default:
		return d.Errf("timestamp '%s' is neither field nor header nor json", args[0])
	}
	if len(args) == 3 {
		t.Unit = args[2]
	}
	return nil
}
