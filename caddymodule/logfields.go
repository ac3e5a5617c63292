package caddymodule

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func (h *Handler) setLogFields(verify.Sender) error {
	for _, f := range h.LogFields {
		if f.Name == "" || f.From == "" || f.Kind != verify.FromHeader && f.Kind != verify.FromJSON {
			return fmt.Errorf("log_field %q: give a name, and `json <path>` or `header <name>`", f.Name)
		}
		if f.Kind == verify.FromHeader && strings.ContainsAny(f.From, "_.") {
			return fmt.Errorf("log_field %q: Caddy drops headers with `_` or `.` in their names, such as %s", f.Name, f.From)
		}
		if _, err := verify.JSONValue([]byte("{}"), f.From); f.Kind == verify.FromJSON && verify.Reason(err) == "" {
			return fmt.Errorf("log_field %q: %w", f.Name, err)
		}
	}
	return nil
}

// extraFields evaluates the route's own log fields, before the body is gone. A
// value that is not there is left out.
func (d *delivery) extraFields() {
	for _, f := range d.LogFields {
		var value string
		var err error
		if f.Kind == verify.FromHeader {
			value = d.r.Header.Get(f.From)
		} else {
			value, err = verify.JSONValue(d.content, f.From)
		}
		if err == nil && value != "" {
			d.extra = append(d.extra, zap.String(f.Name, shortened(value)))
		}
	}
}
