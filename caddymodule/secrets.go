package caddymodule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// secrets resolves the route's secrets, once, into values that never go back
// into the configuration.
func (h *Handler) secrets() ([]verify.Secret, error) {
	var secrets []verify.Secret
	for i, s := range h.Secrets {
		value, err := resolve(s)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		secrets = append(secrets, verify.Secret{Value: value})
	}
	h.currentSecrets = len(secrets)
	for i, p := range h.PreviousSecrets {
		secret, err := p.resolve()
		switch {
		case errors.Is(err, errEmpty), err == nil && !secret.Until.IsZero() && !time.Now().Before(secret.Until):
			h.logger.Info("a previous secret is empty or past its time and is skipped",
				zap.String("source", h.Source), zap.Int("previous_secret", i+1))
		case err != nil:
			return nil, fmt.Errorf("previous_secret %d: %w", i+1, err)
		default:
			secrets = append(secrets, secret)
		}
	}
	if h.currentSecrets == 0 {
		return nil, errors.New("no secret is given")
	}
	return secrets, nil
}

func (p PreviousSecret) resolve() (s verify.Secret, err error) {
	if s.Value, err = resolve(p.Value); err != nil || p.Until == "" {
		return s, err
	}
	until, err := resolve(p.Until)
	if err != nil {
		return s, fmt.Errorf("until: %v", err) // an empty time is no empty secret
	}
	if s.Until, err = time.Parse(time.RFC3339, until); err != nil {
		return s, fmt.Errorf("until %q is not an RFC 3339 time, such as 2026-12-01T00:00:00Z", until)
	}
	return s, nil
}

var errEmpty = errors.New("it is empty (is the variable or the file that it names set?)")

// resolve replaces the placeholders of a value. What stays empty or unresolved
// is refused: a key must never be empty, or the text of a placeholder.
func resolve(value string) (string, error) {
	repl := caddy.NewReplacer()
	resolved, err := repl.ReplaceOrErr(value, false, true)
	switch {
	case err != nil:
		return "", errors.New("it holds a placeholder that is not known when the configuration is loaded")
	case strings.TrimSpace(resolved) == "":
		return "", errEmpty
	}
	if _, err := repl.ReplaceOrErr(value, true, true); err != nil {
		return "", errors.New("a placeholder in it is empty (is the variable or the file that it names set?)")
	}
	return resolved, nil
}
