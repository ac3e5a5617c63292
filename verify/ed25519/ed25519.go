// Package ed25519 registers the algorithm "ed25519" (RFC 8032). The secret of a
// route is the sender's public key of 32 bytes, as Discord and Telnyx show it;
// it proves deliveries and cannot make them. For tests it may be the private key
// of 64 bytes that ends in the public key, as libsodium and Go have it.
package ed25519

import (
	"crypto/ed25519"
	"errors"
	"slices"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func init() {
	verify.RegisterAlgorithm("ed25519", verify.Algorithm{NewKey: newKey, MaxSize: ed25519.SignatureSize})
}

type key struct {
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil: can only verify
}

func newKey(secret []byte) (verify.Key, error) {
	secret = slices.Clone(secret)
	switch len(secret) {
	case ed25519.PublicKeySize:
		return &key{public: secret}, nil
	case ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(secret[:ed25519.SeedSize])
		if !slices.Equal(private, ed25519.PrivateKey(secret)) {
			return nil, errors.New("it is no private key: its second half is not the public key of the first")
		}
		return &key{private.Public().(ed25519.PublicKey), private}, nil
	}
	return nil, errors.New("an Ed25519 public key has 32 bytes; is the secret_format right?")
}

// Verify implements [verify.Key].
func (k *key) Verify(message, signature []byte) bool {
	return ed25519.Verify(k.public, message, signature)
}

// Sign implements [verify.Signer].
func (k *key) Sign(message []byte) ([]byte, error) {
	if k.private == nil {
		return nil, errors.New("a public key cannot sign: give the private key of 64 bytes")
	}
	return ed25519.Sign(k.private, message), nil
}
