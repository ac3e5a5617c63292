package verify

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Algorithm is a way to prove a delivery that is no HMAC. Its package registers
// it, as packages of hashes do with crypto.RegisterHash.
type Algorithm struct {
	// NewKey makes the key of a secret: for signatures with a public key, that
	// key. The secret comes decoded from its format; errors must not quote it.
	NewKey func(secret []byte) (Key, error)
	// MaxSize is the length of the longest signature, in bytes.
	MaxSize int
	// Static tells that the signature is the same text in every request. It is not
	// decoded, and covers nothing of the delivery.
	Static bool
}

// Key judges signatures. It is safe for concurrent use.
type Key interface {
	// Verify reports whether a signature is of this message. Signature has at most
	// MaxSize bytes.
	Verify(message, signature []byte) bool
}

// Signer is a Key that can sign, for tests and demonstrations.
type Signer interface {
	// Sign fails with a key that can only verify.
	Sign(message []byte) ([]byte, error)
}

// algorithms are the registered ones. Only package initialisation writes to it.
var algorithms = make(map[string]Algorithm)

// RegisterAlgorithm makes an algorithm known by the name that configurations
// use. It is to be called by the init function of a package, and panics if the
// name is taken.
func RegisterAlgorithm(name string, a Algorithm) {
	_, taken := algorithms[name]
	if _, hash := hashes[name]; taken || hash {
		panic("verify: the algorithm " + name + " is registered twice")
	}
	algorithms[name] = a
}

// algorithmNames lists what configurations may use.
func algorithmNames() string {
	return strings.Join(append([]string{SHA1, SHA256, SHA512}, slices.Sorted(maps.Keys(algorithms))...), ", ")
}

// decode turns the text of a signature into its bytes, which have one spelling
// but for the case of hex digits and the padding of base64url. Nil stands for
// hex.
func (a *Algorithm) decode(enc *base64.Encoding, s string) ([]byte, bool) {
	switch {
	case s == "" || strings.ContainsAny(s, "\r\n"): // which decoders skip
		return nil, false
	case a.Static:
		return []byte(s), len(s) <= a.MaxSize
	case len(s) > hex.EncodedLen(a.MaxSize):
		return nil, false
	}
	var b []byte
	var err error
	if enc == nil {
		b, err = hex.DecodeString(s)
	} else {
		if enc == strictURL && len(s)%4 == 0 {
			s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
		}
		b, err = enc.DecodeString(s)
	}
	return b, err == nil && len(b) <= a.MaxSize
}
