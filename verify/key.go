package verify

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// key is one secret as one scheme uses it.
type key struct {
	Key
	mac    *mac      // the same key; nil where the algorithm is no HMAC
	secret int       // its index in the configuration
	until  time.Time // zero: no end
}

func (k *key) usable(now time.Time) bool {
	return k.until.IsZero() || now.Before(k.until)
}

func (k *key) sign(message []byte) ([]byte, error) {
	signer, ok := k.Key.(Signer)
	if !ok {
		return nil, errors.New("keys of this algorithm cannot sign")
	}
	return signer.Sign(message)
}

// keysOf makes the keys of a scheme, of the secrets that it owns. raw are their
// bytes.
func keysOf(s Scheme, sender Sender, secrets []Secret) (keys []*key, raw []string, err error) {
	format := or(s.SecretFormat, sender.SecretFormat)
	for i, secret := range secrets {
		if !s.owns(secret, sender.Schemes) {
			continue
		}
		value := secret.Value
		if format != Text {
			value = value[len(s.SecretPrefix):]
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
		k.Key, err = a.NewKey(secret)
		return err
	}
	k.mac, err = newMAC(algorithm, secret)
	k.Key = k.mac
	return err
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
