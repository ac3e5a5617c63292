// Package token registers the algorithm "token": the header holds the secret
// itself, as GitLab's X-Gitlab-Token and Telegram's
// X-Telegram-Bot-Api-Secret-Token do. It proves that the client knows the token,
// and nothing about what it sends: whoever sees one delivery can send others.
package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// maxSize bounds a token that a client presents.
const maxSize = 4096

func init() {
	verify.RegisterAlgorithm("token", verify.Algorithm{NewKey: newKey, MaxSize: maxSize, Static: true})
}

type key []byte

func newKey(secret []byte) (verify.Key, error) { return key(slices.Clone(secret)), nil }

// Verify takes the same time for every token of one length, whatever the secret
// is: hashed, both have the same length.
func (k key) Verify(_, presented []byte) bool {
	want, got := sha256.Sum256(k), sha256.Sum256(presented)
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// Sign implements [verify.Signer].
func (k key) Sign([]byte) ([]byte, error) { return k, nil }
