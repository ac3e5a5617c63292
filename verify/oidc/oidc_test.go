package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc/oidctest"
)

// noon is the time of most tests.
var noon = time.Unix(1767225600, 0)

// claims are changes of what a token says.
type claims = map[string]any

func config(i *oidctest.Issuer) oidc.Config {
	return oidc.Config{Audience: []string{oidctest.Audience}, Email: []string{oidctest.Email}, JWKSURL: i.URL}
}

func mustNew(t testing.TB, c oidc.Config) *oidc.Authenticator {
	t.Helper()
	a, err := oidc.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// start returns an issuer and who accepts its tokens.
func start(t testing.TB) (*oidctest.Issuer, *oidc.Authenticator) {
	t.Helper()
	i := oidctest.Start(t)
	return i, mustNew(t, config(i))
}

func with(authorization ...string) *verify.Request {
	return &verify.Request{Method: "POST", URI: "/push", Header: http.Header{"Authorization": authorization}, Body: []byte("{}")}
}

// accept and refuse present a token.
func accept(t *testing.T, a *oidc.Authenticator, token string, now time.Time) {
	t.Helper()
	if err := a.Authenticate(with("Bearer "+token), now); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func refuse(t *testing.T, a *oidc.Authenticator, token string, now time.Time, kind *verify.Error, detail string) {
	t.Helper()
	refuseRequest(t, a, with("Bearer "+token), now, kind, detail)
}

func refuseRequest(t *testing.T, a *oidc.Authenticator, r *verify.Request, now time.Time, kind *verify.Error, detail string) {
	t.Helper()
	err := a.Authenticate(r, now)
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), detail) {
		t.Errorf("got %v; want %s and %q", err, kind.Reason, detail)
		return
	}
	if token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); len(token) > 20 && strings.Contains(err.Error(), token) {
		t.Errorf("the error shows the token: %v", err)
	}
}

func TestGenuineTokenIsAccepted(t *testing.T) {
	i, a := start(t)
	token := i.Token(noon)
	accept(t, a, token, noon)
	for _, header := range []string{"bearer " + token, "BEARER  " + token + " "} {
		if err := a.Authenticate(with(header), noon); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	for name, change := range map[string]claims{
		"Google's other name": {"iss": "accounts.google.com"},
		"several audiences":   {"aud": []string{"https://other.example.com", oidctest.Audience}},
		"no time of issue":    {"iat": nil},
		"a beginning":         {"nbf": noon.Unix()},
	} {
		t.Run(name, func(t *testing.T) { accept(t, a, i.Token(noon, change), noon) })
	}
	if n := i.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestTokenForOrFromSomebodyElseIsRefused(t *testing.T) {
	i, a := start(t)
	for name, test := range map[string]struct {
		change claims
		detail string
	}{
		"issuer":             {claims{"iss": "https://accounts.example.com"}, "another issuer"},
		"issuer with slash":  {claims{"iss": "https://accounts.google.com/"}, "another issuer"},
		"no issuer":          {claims{"iss": nil}, "another issuer"},
		"audience":           {claims{"aud": "https://evil.example.com"}, `another audience, "https://evil.example.com"`},
		"audience in part":   {claims{"aud": oidctest.Audience + "/"}, "another audience"},
		"no audience":        {claims{"aud": nil}, "another audience"},
		"email":              {claims{"email": "evil@project.iam.gserviceaccount.com"}, "another email"},
		"no email":           {claims{"email": nil}, "another email"},
		"unverified email":   {claims{"email_verified": false}, "not verified"},
		"verified in a text": {claims{"email_verified": "true"}, "not verified"},
		"no word of it":      {claims{"email_verified": nil}, "not verified"},
		"no end":             {claims{"exp": nil}, "no end"},
		"end in words":       {claims{"exp": "tomorrow"}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) { refuse(t, a, i.Token(noon, test.change), noon, verify.ErrForged, test.detail) })
	}
}

func TestTimesOfATokenAreChecked(t *testing.T) {
	i, a := start(t)
	token := i.Token(noon) // for an hour
	const leeway = time.Minute
	accept(t, a, token, noon.Add(-leeway))
	accept(t, a, token, noon.Add(time.Hour+leeway))
	refuse(t, a, token, noon.Add(-leeway-time.Second), verify.ErrStale, "from the future")
	refuse(t, a, token, noon.Add(time.Hour+leeway+time.Second), verify.ErrStale, "expired 1m1s ago")
	refuse(t, a, i.Token(noon, claims{"nbf": noon.Add(time.Hour).Unix()}), noon, verify.ErrStale, "from the future")
	err := a.Authenticate(with("Bearer "+token), noon.Add(2*time.Hour))
	if e, ok := errors.AsType[*verify.Error](err); !ok || e.Age != 2*time.Hour {
		t.Errorf("got %+v", err)
	}
	// Whose it is comes first.
	refuse(t, a, i.Token(noon, claims{"aud": "x"}), noon.Add(2*time.Hour), verify.ErrForged, "audience")
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	i, a := start(t)
	token := i.Token(noon)
	parts := strings.Split(token, ".")
	for name, lines := range map[string][]string{
		"no header":      nil,
		"empty":          {""},
		"no token":       {"Bearer"},
		"blank token":    {"Bearer  "},
		"basic":          {"Basic dXNlcjpwYXNzd29yZA=="},
		"no scheme":      {token},
		"several":        {"Bearer " + token, "Bearer " + token},
		"garbage":        {"Bearer abc"},
		"dots":           {"Bearer ..."},
		"two parts":      {"Bearer " + parts[0] + "." + parts[1]},
		"four parts":     {"Bearer " + token + ".x"},
		"JSON":           {`Bearer {"payload":"e30","protected":"e30","signature":""}`},
		"too long":       {"Bearer " + strings.Repeat("a", 1<<20)},
		"header no JSON": {"Bearer " + base64.RawURLEncoding.EncodeToString([]byte("hello")) + "." + parts[1] + "." + parts[2]},
	} {
		t.Run(name, func(t *testing.T) { refuseRequest(t, a, with(lines...), noon, verify.ErrUnsigned, "") })
	}
	if n := i.Fetches(); n != 0 {
		t.Errorf("what is no token had the keys fetched %d times", n)
	}
}

// TestSignatureThatIsNotTheIssuersIsRefused tries what broke other verifiers.
func TestSignatureThatIsNotTheIssuersIsRefused(t *testing.T) {
	i, a := start(t)
	encode := base64.RawURLEncoding.EncodeToString
	payload, _ := json.Marshal(oidctest.Claims(noon))
	genuine := i.Token(noon)
	accept(t, a, genuine, noon)
	parts := strings.Split(genuine, ".")
	foreign := oidctest.Key(99)
	kid := oidctest.KeyID(0)
	byForeign := func(k any) string {
		return oidctest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: k}, oidctest.Claims(noon))
	}
	der, err := x509.MarshalPKIXPublicKey(oidctest.Key(0).Public())
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	embedding, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: foreign, KeyID: kid}}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := embedding.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	carried, err := embedded.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		token string
		kind  *verify.Error
	}{
		"another key under the issuer's name": {byForeign(jose.JSONWebKey{Key: foreign, KeyID: kid}), verify.ErrForged},
		"a key that the token brings along":   {carried, verify.ErrForged},
		"another kind of key":                 {oidctest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: ec, KeyID: kid}}, oidctest.Claims(noon)), verify.ErrForged},
		"no name of a key":                    {byForeign(foreign), verify.ErrForged},
		"changed claims":                      {parts[0] + "." + encode([]byte(strings.Replace(string(payload), "pusher", "Pusher", 1))) + "." + parts[2], verify.ErrForged},
		"no signature":                        {parts[0] + "." + parts[1] + ".", verify.ErrForged},
		"alg none":                            {encode([]byte(`{"alg":"none","kid":"`+kid+`"}`)) + "." + encode(payload) + ".", verify.ErrUnsigned},
		"alg None with the signature":         {encode([]byte(`{"alg":"None","kid":"`+kid+`"}`)) + "." + parts[1] + "." + parts[2], verify.ErrUnsigned},
		"no alg":                              {encode([]byte(`{"kid":"`+kid+`"}`)) + "." + parts[1] + "." + parts[2], verify.ErrUnsigned},
		"the public key as an HMAC secret":    {oidctest.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: der, KeyID: kid}}, oidctest.Claims(noon)), verify.ErrUnsigned},
		"the key set as an HMAC secret":       {oidctest.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: oidctest.KeySet(0), KeyID: kid}}, oidctest.Claims(noon)), verify.ErrUnsigned},
		"an extension that must be known":     {encode([]byte(`{"alg":"RS256","kid":"`+kid+`","crit":["x"],"x":1}`)) + "." + parts[1] + "." + parts[2], verify.ErrForged},
	} {
		t.Run(name, func(t *testing.T) { refuse(t, a, test.token, noon, test.kind, "") })
	}
}

func TestEllipticKeysAreAccepted(t *testing.T) {
	i, a := start(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "ec"}}})
	if err != nil {
		t.Fatal(err)
	}
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })
	accept(t, a, oidctest.Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "ec"}}, oidctest.Claims(noon)), noon)
}

func TestAnotherIssuerNeedsNoEmail(t *testing.T) {
	i := oidctest.Start(t)
	a := mustNew(t, oidc.Config{Audience: []string{oidctest.Audience}, Issuer: "https://id.example.com", JWKSURL: i.URL})
	accept(t, a, i.Token(noon, claims{"iss": "https://id.example.com", "email": nil, "email_verified": "true"}), noon)
	refuse(t, a, i.Token(noon), noon, verify.ErrForged, "another issuer")
	refuse(t, a, i.Token(noon, claims{"iss": "accounts.google.com"}), noon, verify.ErrForged, "another issuer")
}

func TestUnsafeConfigurationsAreRefused(t *testing.T) {
	audience, email := []string{oidctest.Audience}, []string{oidctest.Email}
	for name, test := range map[string]struct {
		config oidc.Config
		reason string
	}{
		"no audience":        {oidc.Config{Email: email}, "audience is required"},
		"no email":           {oidc.Config{Audience: audience}, "email is required"},
		"no email of Google": {oidc.Config{Audience: audience, Issuer: "accounts.google.com"}, "email is required"},
		"no keys":            {oidc.Config{Audience: audience, Email: email, Issuer: "https://id.example.com"}, "jwks_url is required"},
		"blank audience":     {oidc.Config{Audience: []string{" "}, Email: email}, "blank"},
		"blank email":        {oidc.Config{Audience: audience, Email: []string{oidctest.Email, ""}}, "blank"},
		"open line":          {oidc.Config{Audience: audience, Email: email, JWKSURL: "http://keys.example.com/certs"}, "not https"},
		"open line to IP":    {oidc.Config{Audience: audience, Email: email, JWKSURL: "http://10.0.0.1/certs"}, "not https"},
		"file":               {oidc.Config{Audience: audience, Email: email, JWKSURL: "file:///etc/keys"}, "not a URL"},
		"no URL":             {oidc.Config{Audience: audience, Email: email, JWKSURL: "certs"}, "not a URL"},
		"password":           {oidc.Config{Audience: audience, Email: email, JWKSURL: "https://u:hunter2@keys.example.com"}, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := oidc.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.reason) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v; want %q", err, test.reason)
			}
		})
	}
	for _, url := range []string{"", "https://keys.example.com/certs", "http://localhost:8080/certs", "http://127.0.0.1/certs", "http://[::1]:8080/certs"} {
		mustNew(t, oidc.Config{Audience: audience, Email: email, JWKSURL: url})
	}
}

func TestIdentityTellsConfigurationsApart(t *testing.T) {
	base := oidc.Config{Audience: []string{"a", "b"}, Email: []string{"c", "d"}}
	identity := mustNew(t, base).Identity()
	same := oidc.Config{Audience: []string{"b", "a"}, Email: []string{"d", "c"}, Issuer: oidc.Google, JWKSURL: oidc.GoogleJWKSURL}
	if got := mustNew(t, same).Identity(); got != identity {
		t.Errorf("the order of lists and written defaults make a difference: %s, %s", got, identity)
	}
	for _, change := range []func(*oidc.Config){
		func(c *oidc.Config) { c.Audience = []string{"a b"} },
		func(c *oidc.Config) { c.Email = []string{"c"} },
		func(c *oidc.Config) { c.Issuer = "accounts.google.com" },
		func(c *oidc.Config) { c.JWKSURL = "https://keys.example.com" },
	} {
		c := base
		change(&c)
		if got := mustNew(t, c).Identity(); got == identity {
			t.Errorf("%+v has the same identity", c)
		}
	}
}
