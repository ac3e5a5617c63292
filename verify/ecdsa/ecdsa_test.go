package ecdsa

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// pair is a key pair in DER: public, PKCS #8 and SEC 1.
func pair(t testing.TB, curve elliptic.Curve) (public, pkcs8, sec1 []byte) {
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for to, marshal := range map[*[]byte]func() ([]byte, error){
		&public: func() ([]byte, error) { return x509.MarshalPKIXPublicKey(&private.PublicKey) },
		&pkcs8:  func() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(private) },
		&sec1:   func() ([]byte, error) { return x509.MarshalECPrivateKey(private) },
	} {
		if *to, err = marshal(); err != nil {
			t.Fatal(err)
		}
	}
	return public, pkcs8, sec1
}

func mustKey(t testing.TB, secret []byte) verify.Key {
	t.Helper()
	k, err := newKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestEitherFormOfThePrivateKeySigns(t *testing.T) {
	public, pkcs8, sec1 := pair(t, elliptic.P256())
	k := mustKey(t, public)
	for _, private := range [][]byte{pkcs8, sec1} {
		signature, err := mustKey(t, private).(verify.Signer).Sign([]byte("message"))
		if err != nil {
			t.Fatal(err)
		}
		if !k.Verify([]byte("message"), signature) {
			t.Error("refused")
		}
		if k.Verify([]byte("massage"), signature) || k.Verify([]byte("message"), signature[1:]) || k.Verify([]byte("message"), append(signature, 0)) {
			t.Error("accepted")
		}
		if len(signature) > maxSize {
			t.Errorf("%d bytes", len(signature))
		}
	}
	if _, err := k.(verify.Signer).Sign(nil); err == nil {
		t.Error("a public key signed")
	}
}

func TestWhatIsNoKeyOnP256IsRefused(t *testing.T) {
	p384, p384Private, _ := pair(t, elliptic.P384())
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, _ := x509.MarshalPKIXPublicKey(edPublic)
	edP, _ := x509.MarshalPKCS8PrivateKey(edPrivate)
	for name, secret := range map[string][]byte{
		"nothing": nil, "text": []byte("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE"), "another curve": p384, "its private key": p384Private,
		"Ed25519": ed, "its private key too": edP,
	} {
		if _, err := newKey(secret); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// No key and no signature may make it panic.
func FuzzVerify(f *testing.F) {
	public, pkcs8, sec1 := pair(f, elliptic.P256())
	signature, err := mustKey(f, sec1).(verify.Signer).Sign([]byte("message"))
	if err != nil {
		f.Fatal(err)
	}
	k := mustKey(f, public)
	f.Add(public, signature)
	f.Add(pkcs8, signature[:8])
	f.Add(sec1, []byte("0\x06\x02\x01\x01\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, secret, signed []byte) {
		if other, err := newKey(secret); err == nil {
			other.Verify([]byte("message"), signed)
		}
		if k.Verify([]byte("another"), signed) {
			t.Errorf("accepted %s", base64.StdEncoding.EncodeToString(signed))
		}
	})
}
