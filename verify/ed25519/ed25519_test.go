package ed25519

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// RFC 8032, section 7.1, TEST 2.
const (
	seed      = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
	public    = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
	signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)

func bytes(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestSignatureOfTheStandardIsAccepted(t *testing.T) {
	for _, secret := range []string{public, seed + public} {
		k, err := newKey(bytes(secret))
		if err != nil {
			t.Fatal(err)
		}
		if !k.Verify([]byte{0x72}, bytes(signature)) {
			t.Error("refused")
		}
		if k.Verify([]byte{0x73}, bytes(signature)) || k.Verify([]byte{0x72}, bytes(signature)[:63]) || k.Verify([]byte{0x72}, nil) {
			t.Error("accepted")
		}
	}
}

func TestOnlyThePrivateKeySigns(t *testing.T) {
	k, err := newKey(bytes(seed + public))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.(verify.Signer).Sign([]byte{0x72}); err != nil || !slices.Equal(got, bytes(signature)) {
		t.Errorf("%x, %v", got, err)
	}
	if k, err = newKey(bytes(public)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.(verify.Signer).Sign(nil); err == nil {
		t.Error("a public key signed")
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	for _, secret := range []string{"", public[2:], public + "00", public + seed} {
		if _, err := newKey(bytes(secret)); err == nil || secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", secret, err)
		}
	}
}

// No key and no signature may make it panic, and none may pass but the signed.
func FuzzVerify(f *testing.F) {
	f.Add(bytes(public), []byte{0x72}, bytes(signature))
	f.Add(bytes(seed+public), []byte{0x72}, bytes(signature))
	f.Add(make([]byte, 32), []byte{}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, secret, message, signed []byte) {
		k, err := newKey(secret)
		if err != nil {
			return
		}
		if k.Verify(message, signed) && slices.Equal(secret, bytes(public)) && !(slices.Equal(message, []byte{0x72}) && slices.Equal(signed, bytes(signature))) {
			t.Errorf("accepted %x of %x", signed, message)
		}
	})
}

func TestSignaturesOfAnotherLengthAreRefused(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKey(private)
	if err != nil {
		t.Fatal(err)
	}
	signature := ed25519.Sign(private, []byte("x"))
	if !k.Verify([]byte("x"), signature) {
		t.Error("the signature itself is refused")
	}
	for _, s := range [][]byte{nil, {}, signature[:63], append(signature[:64:64], 0)} {
		if k.Verify([]byte("x"), s) {
			t.Errorf("%d bytes are accepted", len(s))
		}
	}
}
