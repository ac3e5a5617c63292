package verify

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// twoKeys has one alternative for secrets that begin with pub_, and one for all
// others. Both read the same header, as Standard Webhooks has it.
func twoKeys(secrets ...Secret) (*Verifier, error) {
	return newOf(Sender{SecretFormat: Text, Tolerance: time.Minute, Schemes: []Scheme{
		{Headers: []string{"X-Sig"}, Labels: []string{"v1"}, IDHeader: "X-Id", Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-T"}},
		{Headers: []string{"X-Sig"}, Labels: []string{"v2"}, IDHeader: "X-Other-Id", Algorithm: "ed25519", SecretFormat: Base64, SecretPrefix: "pub_"},
	}}, Config{Secrets: secrets})
}

// Of RFC 8032, section 7.1: the private key, its public half behind it.
var rfc8032 = "pub_" + base64.StdEncoding.EncodeToString(fromHex(
	"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))

func TestEachSecretBelongsToTheSchemeWithItsPrefix(t *testing.T) {
	v, err := twoKeys(Secret{Value: "text"}, Secret{Value: rfc8032}, Secret{Value: "text2"})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := twoKeys(Secret{Value: rfc8032})
	if err != nil {
		t.Fatal(err)
	}
	h, err := signer.Sign(SignInput{ID: "e2", Body: []byte("{}"), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	public := h.Get("X-Sig")
	for name, c := range map[string]struct {
		headers []string
		secret  int
		id      string
	}{
		"hmac":           {[]string{"X-Sig: v1=" + sign("text", "1767225600{}"), "X-T: 1767225600", "X-Id: e1"}, 0, "e1"},
		"second hmac":    {[]string{"X-Sig: v1=" + sign("text2", "1767225600{}"), "X-T: 1767225600", "X-Id: e1"}, 2, "e1"},
		"public":         {[]string{"X-Sig: " + public, "X-Other-Id: e2"}, 1, "e2"},
		"both, one good": {[]string{"X-Sig: v1=" + sign("no", "") + "," + public, "X-T: 1767225600", "X-Id: e1", "X-Other-Id: e2"}, 1, "e2"},
		"first counts":   {[]string{"X-Sig: " + public + ",v1=" + sign("text", "1767225600{}"), "X-T: 1767225600", "X-Id: e1", "X-Other-Id: e2"}, 0, "e1"},
	} {
		r := post("{}", c.headers...)
		res := accept(t, v, r)
		id, err := v.EventID(r, res)
		if res.Secret != c.secret || err != nil || id.Text != c.id {
			t.Errorf("%s: secret %d, id %q, %v", name, res.Secret, id.Text, err)
		}
	}
	if v.HasTimestamp() || v.Tolerance() != time.Minute {
		t.Errorf("timestamp %v, tolerance %v", v.HasTimestamp(), v.Tolerance())
	}
	refuse(t, v, post("{}", "X-Sig: v1="+sign("no", ""), "X-T: 1767225600"), ErrForged)
	refuse(t, v, post("{}", "X-Sig: v3=x"), ErrUnsigned)
	refuse(t, v, post("{}"), ErrUnsigned)
	// A signature that is right but old is not saved by another scheme.
	refuse(t, v, post("{}", "X-Sig: "+public+",v1="+sign("text", "1767220000{}"), "X-T: 1767220000"), ErrStale)
}

func TestAlternativesWithoutASecretAreNotTried(t *testing.T) {
	v, err := twoKeys(Secret{Value: "text"})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.schemes) != 1 || !v.HasTimestamp() {
		t.Errorf("%d schemes", len(v.schemes))
	}
	refuse(t, v, post("{}", "X-Sig: v2="+sign("text", "{}")), ErrUnsigned)
}

func TestSecretsThatNoSchemeHasAUseForAreRefused(t *testing.T) {
	for reason, value := range map[string]string{
		"secret 2 is empty":     "pub_",
		"secret 2 is not base6": "pub_!",
		"has 32 bytes":          "pub_QUJD",
		"it is no private key":  "pub_" + base64.StdEncoding.EncodeToString(make([]byte, 64)),
	} {
		if _, err := twoKeys(Secret{Value: "text"}, Secret{Value: value}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	_, err := newOf(Sender{Schemes: []Scheme{{Headers: []string{"X"}, SecretPrefix: "pub_", Algorithm: "ed25519"}}}, Config{Secrets: []Secret{{Value: "text"}}})
	if err == nil || !strings.Contains(err.Error(), "secret 1 does not begin with pub_") {
		t.Error(err)
	}
}

func TestSecretsOfOneSchemeAreNoSecretsOfAnother(t *testing.T) {
	one, err := twoKeys(Secret{Value: "text"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := twoKeys(Secret{Value: "text"}, Secret{Value: rfc8032})
	if err != nil {
		t.Fatal(err)
	}
	if one.Fingerprint() == two.Fingerprint() {
		t.Error("another secret, the same fingerprint")
	}
}

// TestAlternativesWithoutASecretMayBeUnknown: who does not import an algorithm
// can still use the other schemes of its senders.
func TestAlternativesWithoutASecretMayBeUnknown(t *testing.T) {
	schemes := []Scheme{{Headers: []string{"X"}, IDHeader: "X-Id"}, {Headers: []string{"X"}, Algorithm: "unheard-of", SecretPrefix: "pub_"}}
	if _, err := newOf(Sender{Schemes: schemes, SecretFormat: Text}, Config{Secrets: []Secret{{Value: "a"}}}); err != nil {
		t.Error(err)
	}
	if _, err := newOf(Sender{Schemes: schemes, SecretFormat: Text}, Config{Secrets: []Secret{{Value: "pub_a"}}}); err == nil {
		t.Error("an unknown algorithm was accepted")
	}
}

// Whoever knows a public key could sign with it, if it were taken for a secret.
func TestPublicKeysAreNoSecrets(t *testing.T) {
	const (
		ofStandardWebhooks = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
		ofAPair            = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
		inPEM              = "-----BEGIN PUBLIC KEY-----\n" + ofAPair + "\n-----END PUBLIC KEY-----"
	)
	for _, key := range []string{ofStandardWebhooks, ofAPair, inPEM} {
		for name, c := range map[string]Config{
			"stripe":           {Sender: "stripe"},
			"as text":          {Sender: "standard-webhooks", SecretFormat: Text},
			"of svix":          {Sender: "svix"},
			"gitlab's token":   {Sender: "gitlab"},
			"a custom scheme":  {Scheme: &Scheme{Headers: []string{"X-Sig"}}, EventID: inHeaders("X-Id")},
			"decoded":          {Scheme: &Scheme{Headers: []string{"X-Sig"}}, EventID: inHeaders("X-Id"), SecretFormat: Base64},
			"as the second of": {Sender: "stripe", Secrets: []Secret{{Value: "s"}}},
		} {
			c.Secrets = append(c.Secrets, Secret{Value: key})
			if _, err := New(c); err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("%s: %.12s is taken: %v", name, key, err)
			}
		}
	}
	refused(t, Config{Sender: "stripe", Secrets: []Secret{{Value: ofAPair}}}, "secret 1 is a public key")
	refused(t, Config{Sender: "gitlab", Secrets: []Secret{{Value: ofStandardWebhooks}}}, "secret 1 is a public key")
	mustNew(t, Config{Sender: "standard-webhooks", Secrets: []Secret{{Value: ofStandardWebhooks}}})
}
