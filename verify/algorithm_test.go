package verify_test

// These make themselves known to the tests of package verify.
import (
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ecdsa"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/ed25519"
	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/verify/token"
)
