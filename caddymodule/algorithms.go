package caddymodule

// The algorithms that a signature may have besides the HMACs.
import (
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ecdsa"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ed25519"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/token"
)
