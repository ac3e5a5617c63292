// Package ecdsa registers the algorithm "ecdsa_sha256": ECDSA on the curve P-256
// over the SHA-256 of the message, with signatures in ASN.1 DER, as SendGrid
// signs its event webhook. The secret of a route is the sender's public key, a
// SubjectPublicKeyInfo in DER; in its usual base64 it begins with MFkw. It proves
// deliveries and cannot make them. For tests it may be the private key, in
// PKCS #8 or SEC 1 DER.
package ecdsa

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// maxSize is the size of the longest signature: a sequence of two integers of 32
// bytes, each with a sign byte in front.
const maxSize = 2 + 2*(2+33)

func init() {
	verify.RegisterAlgorithm("ecdsa_sha256", verify.Algorithm{NewKey: newKey, MaxSize: maxSize})
}

type key struct {
	public  *ecdsa.PublicKey
	private *ecdsa.PrivateKey // nil: can only verify
}

func newKey(secret []byte) (verify.Key, error) {
	k := new(key)
	if public, err := x509.ParsePKIXPublicKey(secret); err == nil {
		k.public, _ = public.(*ecdsa.PublicKey)
	} else if k.private = parsePrivate(secret); k.private != nil {
		k.public = &k.private.PublicKey
	}
	if k.public == nil || k.public.Curve != elliptic.P256() {
		return nil, errors.New("it is no public key of ECDSA on P-256 in DER; is the secret_format right?")
	}
	return k, nil
}

func parsePrivate(der []byte) *ecdsa.PrivateKey {
	if private, err := x509.ParseECPrivateKey(der); err == nil {
		return private
	}
	private, _ := x509.ParsePKCS8PrivateKey(der)
	k, _ := private.(*ecdsa.PrivateKey)
	return k
}

// Verify implements [verify.Key].
func (k *key) Verify(message, signature []byte) bool {
	sum := sha256.Sum256(message)
	return ecdsa.VerifyASN1(k.public, sum[:], signature)
}

// Sign implements [verify.Signer].
func (k *key) Sign(message []byte) ([]byte, error) {
	if k.private == nil {
		return nil, errors.New("a public key cannot sign: give the private key")
	}
	sum := sha256.Sum256(message)
	return ecdsa.SignASN1(rand.Reader, k.private, sum[:])
}
