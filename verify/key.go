package verify

import (
	"crypto/hmac"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// key is one secret as one scheme uses it.
type key struct {
	mac    *mac      // nil where the algorithm is no HMAC
	other  Key       // where it is none
	secret int       // its index in the configuration
	until  time.Time // zero: no end
}

func (k *key) usable(now time.Time) bool {
	return k.until.IsZero() || now.Before(k.until)
}

// signed reports whether one of the signatures is of the message, of which an HMAC
// is made once, however many there are.
func (k *key) signed(message []byte, signatures [][]byte) bool {
	if k.mac == nil {
		return slices.ContainsFunc(signatures, func(s []byte) bool { return k.other.Verify(message, s) })
	}
	sum := k.mac.of(message)
	return slices.ContainsFunc(signatures, func(s []byte) bool { return hmac.Equal(sum, s) })
}

func (k *key) sign(message []byte) ([]byte, error) {
	if k.mac != nil {
		return k.mac.of(message), nil
	}
	signer, ok := k.other.(Signer)
	if !ok {
		return nil, errors.New("keys of this algorithm cannot sign")
	}
	return signer.Sign(message)
}

// keysOf makes the keys of a scheme, of the secrets that it owns. raw are their
// bytes.
func keysOf(s Scheme, sender Sender, secrets []Secret) (keys []*key, raw []string, err error) {
	format := or(s.SecretFormat, sender.SecretFormat)
	a, isOther := algorithms[s.Algorithm]
	shared := !isOther || a.Static
	for i, secret := range secrets {
		if !s.owns(secret, sender.Schemes) {
			continue
		}
		value := secret.Value
		if format != Text {
			value = value[len(s.SecretPrefix):]
		}
		if shared && isPublicKey(value) {
			return nil, nil, fmt.Errorf("secret %d is a public key, and %s wants a secret: whoever knows the key could sign", i+1, s.Algorithm)
		}
		decoded, err := decodeSecret(value, format)
		if err != nil {
			return nil, nil, fmt.Errorf("secret %d %w", i+1, err)
		}
		k := &key{secret: i, until: secret.Until}
		if err := k.set(s.Algorithm, decoded); err != nil {
			return nil, nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		keys = append(keys, k)
		raw = append(raw, string(decoded))
	}
	return keys, raw, nil
}

func (k *key) set(algorithm string, secret []byte) (err error) {
	if a, ok := algorithms[algorithm]; ok {
		k.other, err = a.NewKey(secret)
		return err
	}
	k.mac, err = newMAC(algorithm, secret)
	return err
}

// isPublicKey reports whether a secret is the public key of a pair: a whpk_ of
// Standard Webhooks, PEM, or the base64 of a SubjectPublicKeyInfo.
func isPublicKey(secret string) bool {
	if strings.HasPrefix(secret, "whpk_") || strings.HasPrefix(secret, "-----BEGIN PUBLIC KEY-----") {
		return true
	}
	der, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return false
	}
	_, err = x509.ParsePKIXPublicKey(der)
	return err == nil
}

// owns reports whether a secret is the scheme's: one with its prefix or, if it has
// none, with the prefix of no other scheme.
func (s Scheme) owns(secret Secret, all []Scheme) bool {
	return prefixOf(all, secret.Value) == s.SecretPrefix
}

// prefixOf returns the longest prefix of any scheme that a secret has.
func prefixOf(schemes []Scheme, secret string) (prefix string) {
	for _, s := range schemes {
		if len(s.SecretPrefix) > len(prefix) && strings.HasPrefix(secret, s.SecretPrefix) {
			prefix = s.SecretPrefix
		}
	}
	return prefix
}

// checkSecrets finds the secret that no scheme has a use for.
func checkSecrets(schemes []Scheme, secrets []Secret) error {
	if len(secrets) == 0 {
		return errors.New("no secret is given")
	}
	prefixes := make(map[string]bool)
	for _, s := range schemes {
		prefixes[s.SecretPrefix] = true
	}
	for i, s := range secrets {
		if !prefixes[prefixOf(schemes, s.Value)] {
			return fmt.Errorf("secret %d does not begin with %s, as this sender's do", i+1, schemes[0].SecretPrefix)
		}
	}
	return nil
}
