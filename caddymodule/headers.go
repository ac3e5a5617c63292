package caddymodule

import (
	"net/http"
	"strings"
)

// resultHeader tells the upstream and the sender what a delivery is.
const resultHeader = "Webhook-Dedupe"

// stripOwnHeaders removes what only the gateway may say. Senders cannot forge
// it, in whatever spelling an upstream might read as the same name.
func stripOwnHeaders(h http.Header) {
	for name := range h {
		if isOwnHeader(name) {
			delete(h, name)
		}
	}
}

func isOwnHeader(name string) bool {
	if len(name) < len(resultHeader) || name[0]|0x20 != 'w' {
		return false
	}
	head := strings.Map(func(c rune) rune {
		if c == '_' || c == '.' || c == ' ' {
			return '-'
		}
		return c
	}, name[:len(resultHeader)])
	return strings.EqualFold(head, resultHeader)
}
