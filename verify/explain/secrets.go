package explain

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// secretRepairs read each secret in other ways, and try those of other places.
func secretRepairs(in Input) (rs []repair) {
	format := formatOf(in.Config)
	for i, s := range in.Config.Secrets {
		name := "The secret"
		if len(in.Config.Secrets) > 1 {
			name = fmt.Sprintf("Secret %d", i+1)
		}
		rs = append(rs, readings(name, s.Value, format)...)
		if !s.Until.IsZero() && !in.Now.Before(s.Until) {
			rs = append(rs, useKey("secret-expired", name+" is the one, and its time ended before the delivery arrived.", s.Value, format))
		}
	}
	for _, o := range in.Others {
		f := o.Format
		if f == "" {
			f = format
		}
		rs = append(rs, useKey("secret-elsewhere", "It is signed with the secret of "+o.Place+".", o.Value, f))
	}
	return rs
}

func formatOf(c verify.Config) string {
	if c.SecretFormat != "" {
		return c.SecretFormat
	}
	if sender, ok := verify.SenderNamed(c.Sender); ok && sender.SecretFormat != "" {
		return sender.SecretFormat
	}
	return verify.Text
}

// readings are the ways to make a key of a secret, other than the route's.
func readings(name, value, format string) (rs []repair) {
	bare := strings.TrimSpace(value)
	add := func(code, text string, key []byte) {
		if len(key) > 0 {
			rs = append(rs, useKey(code, name+" "+text, hex.EncodeToString(key), verify.Hex))
		}
	}
	if bare != value {
		rs = append(rs, useKey("secret-white-space", name+" has white space around it.", bare, format))
		add("secret-white-space", "is used with the white space around it (give it with secret_format hex).", []byte(value))
	}
	if inner := strings.Trim(bare, "\"'`"); inner != bare {
		rs = append(rs, useKey("secret-quotes", name+" is wrapped in quotes.", inner, format))
	}
	if inner, ok := strings.CutPrefix(bare, "v1,"); ok {
		rs = append(rs, useKey("secret-label", name+" begins with the label `v1,`, which is not part of it.", inner, format))
	}
	if format != verify.Text {
		add("secret-format", "is the text itself (secret_format text).", []byte(bare))
	}
	inner, hasPrefix := strings.CutPrefix(bare, "whsec_")
	if format != verify.Base64 {
		add("secret-format", "is base64 (secret_format base64).", decodeBase64(inner))
	}
	if format != verify.Hex {
		add("secret-format", "is hex (secret_format hex).", decodeHex(inner))
	}
	if hasPrefix {
		add("secret-prefix", "is the text without its whsec_.", []byte(inner))
	} else {
		add("secret-prefix", "is the text with whsec_ in front.", []byte("whsec_"+bare))
	}
	add("secret-line-end", "is used with a line end behind it (give it with secret_format hex).", []byte(bare+"\n"))
	if decoded := html.UnescapeString(bare); decoded != bare {
		add("secret-entities", "is used with its HTML entities decoded.", []byte(decoded))
	}
	if escaped := html.EscapeString(bare); escaped != bare {
		add("secret-entities", "is used with its special characters as HTML entities.", []byte(escaped))
	}
	return rs
}

// useKey makes one secret the only one.
func useKey(code, text, value, format string) repair {
	return repair{Finding{code, text}, func(a *attempt) {
		a.config.Secrets = []verify.Secret{{Value: value}}
		a.config.SecretFormat = format
	}}
}

func decodeBase64(s string) []byte {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := enc.DecodeString(s); err == nil {
			return key
		}
	}
	return nil
}

func decodeHex(s string) []byte {
	key, err := hex.DecodeString(s)
	if err != nil {
		return nil
	}
	return key
}
