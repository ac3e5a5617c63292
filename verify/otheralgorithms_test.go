package verify

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func fromHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestTokenIsComparedAsItIs(t *testing.T) {
	v := custom(t, Scheme{Algorithm: "token"}, secrets("a,b=c/d", "other"))
	if res := accept(t, v, post("any", "X-Sig:  a,b=c/d ")); res.Secret != 0 {
		t.Errorf("secret %d", res.Secret)
	}
	if res := accept(t, v, post("any", "X-Sig: wrong", "X-Sig: other")); res.Secret != 1 {
		t.Errorf("secret %d", res.Secret)
	}
	for _, token := range []string{"a", "b=c/d", "A,B=C/D", "a,b=c/d,", "a,b=c/dx", strings.Repeat("a", 5000)} {
		_, err := v.Verify(post("any", "X-Sig: "+token), noon)
		if err == nil {
			t.Errorf("accepted %q", token)
		}
	}
	refuse(t, v, post("any", "X-Sig: "), ErrUnsigned)
	if v.BodySigned() || v.IDSigned() || v.HasTimestamp() {
		t.Error("a token signs nothing")
	}
}

func TestTokenMayHaveAPrefix(t *testing.T) {
	v := custom(t, Scheme{Algorithm: "token", Prefix: "Bearer ", Headers: []string{"Authorization"}}, secrets("abc"))
	accept(t, v, post("any", "Authorization: Bearer abc"))
	refuse(t, v, post("any", "Authorization: abc"), ErrUnsigned)
	refuse(t, v, post("any", "Authorization: Bearer abd"), ErrForged)
}

func TestTokensSignNothingAndSayIt(t *testing.T) {
	for reason, s := range map[string]Scheme{
		"leave the payload out":  {Payload: "{body}"},
		"leave the encoding out": {Encoding: Hex},
		"token signs nothing":    {Timestamp: Timestamp{Header: "X-T"}},
	} {
		s.Algorithm = "token"
		refused(t, customConfig(s), reason)
	}
}

func TestSignerNeedsAKeyThatCanSign(t *testing.T) {
	public := "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
	v := custom(t, Scheme{Algorithm: "ed25519"}, secrets(public), func(c *Config) { c.SecretFormat = Hex })
	if _, err := v.Sign(SignInput{ID: "x"}); err == nil || !strings.Contains(err.Error(), "cannot sign") {
		t.Error(err)
	}
}

// Signatures with a public key cost much: only few of one request are tried.
func TestFewSignaturesWithAPublicKeyAreTried(t *testing.T) {
	tried := &countingKey{}
	algorithms["counting"] = Algorithm{NewKey: func([]byte) (Key, error) { return tried, nil }, MaxSize: 8}
	defer delete(algorithms, "counting")
	v := custom(t, Scheme{Algorithm: "counting"})
	refuse(t, v, post("{}", "X-Sig: "+strings.Repeat("ab,", 100)), ErrForged)
	if tried.n != maxOtherCandidates {
		t.Errorf("%d were tried", tried.n)
	}
	refuse(t, v, post("{}", "X-Sig: "+strings.Repeat("a", 18)), ErrUnsigned) // longer than the longest
	if _, err := v.Sign(SignInput{ID: "x"}); err == nil {
		t.Error("a key that cannot sign signed")
	}
}

type countingKey struct{ n int }

func (k *countingKey) Verify(_, _ []byte) bool { k.n++; return false }

func TestAlgorithmsAreRegisteredOnce(t *testing.T) {
	for _, name := range []string{"sha256", "token"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered twice", name)
				}
			}()
			RegisterAlgorithm(name, Algorithm{})
		}()
	}
	algorithms["broken"] = Algorithm{NewKey: func([]byte) (Key, error) { return nil, errors.New("unfit") }, MaxSize: 8}
	defer delete(algorithms, "broken")
	refused(t, customConfig(Scheme{Algorithm: "broken"}), "secret 1: unfit")
	refused(t, customConfig(Scheme{Algorithm: "md5"}), `unknown algorithm "md5"; there are sha1, sha256, sha512, broken, ecdsa_sha256, ed25519, token`)
}

func FuzzOtherSignatures(f *testing.F) {
	a := Algorithm{MaxSize: 72}
	for _, s := range []string{"", "ab", "QUJD", "QUI=", "QUI", "QR==", "Q\nUJD", "-_-_", "====", strings.Repeat("A", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, enc := range encodings {
			b, ok := a.decode(enc, s)
			if !ok {
				continue
			}
			again := encodeDigest(enc, b)
			if len(b) > a.MaxSize || len(b) == 0 || again != s && again != strings.ToLower(s) && again != strings.TrimRight(s, "=") {
				t.Errorf("%s: %q became %x", name, s, b)
			}
		}
	})
}
