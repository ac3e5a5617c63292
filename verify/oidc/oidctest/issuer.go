// Package oidctest issues tokens and serves the keys to check them with, for
// tests.
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// What the tokens say unless a test changes it.
const (
	Audience = "https://shop.example.com/push"
	Email    = "pusher@project.iam.gserviceaccount.com"
)

// Issuer signs as Google does, with keys of its own.
type Issuer struct {
	// URL is where the keys are.
	URL string

	t       testing.TB
	mu      sync.Mutex
	serial  int
	fetches int
	answer  http.HandlerFunc
}

// Start returns an issuer that lives as long as the test.
func Start(t testing.TB) *Issuer {
	i := &Issuer{t: t}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.URL = server.URL + "/certs"
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetches++
	answer, serial := i.answer, i.serial
	i.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	_, _ = w.Write(KeySet(serial))
}

// KeySet is the key set that holds the key of that serial number.
func KeySet(serial int) []byte {
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
		Key: Key(serial).Public(), KeyID: KeyID(serial), Algorithm: string(jose.RS256), Use: "sig",
	}}})
	if err != nil {
		panic(err)
	}
	return set
}

// KeyID is the name of the key of that serial number.
func KeyID(serial int) string { return "key-" + strconv.Itoa(serial) }

// Rotate puts another key in the place of the present one.
func (i *Issuer) Rotate() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serial++
}

// Answer makes the server of the keys answer otherwise; nil undoes it.
func (i *Issuer) Answer(answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// Fetches is how often the keys were asked for.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Token returns a token that is valid from a time on, for an hour. Its claims
// may be changed; those that are set to nil are left out.
func (i *Issuer) Token(at time.Time, changes ...map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	serial := i.serial
	i.mu.Unlock()
	return Sign(i.t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: Key(serial), KeyID: KeyID(serial)}}, Claims(at, changes...))
}

// Claims are what a token of Google's for a push subscription says.
func Claims(at time.Time, changes ...map[string]any) map[string]any {
	claims := map[string]any{
		"iss": "https://accounts.google.com", "aud": Audience, "azp": "113774264463038321964", "sub": "113774264463038321964",
		"email": Email, "email_verified": true, "iat": at.Unix(), "exp": at.Add(time.Hour).Unix(),
	}
	for _, change := range changes {
		for name, value := range change {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
	}
	return claims
}

// Sign makes a token.
func Sign(t testing.TB, key jose.SigningKey, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

var (
	keysMu sync.Mutex
	keys   = make(map[int]*rsa.PrivateKey)
)

// Key returns the private key of that serial number, the same for all tests: to
// make one takes long.
func Key(serial int) *rsa.PrivateKey {
	keysMu.Lock()
	defer keysMu.Unlock()
	if keys[serial] == nil {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[serial] = k
	}
	return keys[serial]
}
