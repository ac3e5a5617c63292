package oidc_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc/oidctest"
)

// patience bounds what a test waits for; only a failing test waits that long.
const patience = 20 * time.Second

// stranger is a token that names a key of its own.
func stranger(t testing.TB, serial int, at time.Time) string {
	key := jose.JSONWebKey{Key: oidctest.Key(99), KeyID: "stranger-" + oidctest.KeyID(serial)}
	return oidctest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: key}, oidctest.Claims(at))
}

func TestKeysAreFetchedAtFirstUseOnly(t *testing.T) {
	i, a := start(t)
	if n := i.Fetches(); n != 0 {
		t.Errorf("fetched %d times before anything came", n)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { accept(t, a, i.Token(noon), noon) })
	}
	all.Wait()
	if n := i.Fetches(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

func TestRotatedKeyIsFoundAtOnce(t *testing.T) {
	i, a := start(t)
	old := i.Token(noon)
	accept(t, a, old, noon)
	i.Rotate()
	accept(t, a, i.Token(noon), noon)
	refuse(t, a, old, noon, verify.ErrForged, "the issuer has no key")
}

func TestFloodOfUnknownKeysFetchesSeldom(t *testing.T) {
	i, a := start(t)
	genuine := i.Token(noon)
	accept(t, a, genuine, noon)
	flood := func(now time.Time) {
		for n := range 100 {
			if err := a.Authenticate(with("Bearer "+stranger(t, n, noon)), now); err == nil {
				t.Error("accepted")
			}
			accept(t, a, genuine, now)
		}
	}
	flood(noon)
	if n := i.Fetches(); n != 3 {
		t.Errorf("fetched %d times at once", n)
	}
	refuse(t, a, stranger(t, 0, noon), noon, verify.ErrNoKeys, "a moment ago")
	flood(noon.Add(9 * time.Second))
	flood(noon.Add(-time.Minute)) // a delivery whose body came slowly
	flood(noon.Add(9 * time.Second))
	if n := i.Fetches(); n != 3 {
		t.Errorf("fetched %d times within an interval", n)
	}
	flood(noon.Add(10 * time.Second))
	if n := i.Fetches(); n != 4 {
		t.Errorf("fetched %d times in the next interval", n)
	}
	// A new key is found in spite of it.
	i.Rotate()
	flood2 := noon.Add(20 * time.Second)
	accept(t, a, i.Token(noon), flood2)
}

func TestKeysThatCannotBeFetchedAreTemporary(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"error":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"hung up":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirect":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"no JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no keys":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"much too big": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(padded(300 << 10)) },
		"without end": func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(bytes.Repeat([]byte(" "), 64<<10))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := oidctest.Start(t)
			var warned atomic.Int64
			c := config(i)
			c.Warn = func(error) { warned.Add(1) }
			a := mustNew(t, c)
			i.Answer(answer)
			want := "could not be fetched"
			if name == "much too big" || name == "without end" {
				want = "more than"
			}
			for range 10 {
				refuse(t, a, i.Token(noon), noon, verify.ErrNoKeys, want)
			}
			if fetches := i.Fetches(); fetches != 3 || warned.Load() != 3 {
				t.Errorf("fetched %d times, warned %d times", fetches, warned.Load())
			}
			i.Answer(nil)
			accept(t, a, i.Token(noon), noon.Add(10*time.Second))
		})
	}
}

// padded is a genuine key set of some size.
func padded(size int) []byte {
	return append(oidctest.KeySet(0), bytes.Repeat([]byte(" "), size)...)
}

func TestKeySetThatIsBigIsRead(t *testing.T) {
	i, a := start(t)
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(padded(200 << 10)) })
	accept(t, a, i.Token(noon), noon)
}

// TestSlowKeysDelayOnlyThoseWhoNeedThem holds the second fetch back.
func TestSlowKeysDelayOnlyThoseWhoNeedThem(t *testing.T) {
	i, a := start(t)
	genuine := i.Token(noon)
	accept(t, a, genuine, noon)
	asked, goOn := make(chan struct{}), make(chan struct{})
	i.Answer(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-goOn
		_, _ = w.Write(oidctest.KeySet(1))
	})
	i.Rotate()
	next := i.Token(noon)
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() { accept(t, a, next, noon) })
	}
	wait(t, asked)
	accept(t, a, genuine, noon)
	close(goOn)
	waiting.Wait()
	if n := i.Fetches(); n != 2 {
		t.Errorf("fetched %d times", n)
	}
}

func TestOldKeysServeWhileNewOnesAreFetched(t *testing.T) {
	i, a := start(t)
	later := noon.Add(time.Hour + time.Second)
	old := i.Token(noon)
	accept(t, a, old, noon)
	accept(t, a, old, noon.Add(time.Hour))
	if n := i.Fetches(); n != 1 {
		t.Errorf("fetched %d times within the hour", n)
	}
	asked, goOn := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	i.Answer(func(w http.ResponseWriter, _ *http.Request) {
		ask()
		<-goOn
		_, _ = w.Write(oidctest.KeySet(1))
	})
	accept(t, a, old, later)
	wait(t, asked)
	accept(t, a, old, later)
	i.Rotate()
	close(goOn)
	accept(t, a, i.Token(noon), later)
	refuse(t, a, old, later, verify.ErrForged, "the issuer has no key")
}

func TestOldKeysAreNotTrustedForEver(t *testing.T) {
	i, a := start(t)
	accept(t, a, i.Token(noon), noon)
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for at := noon; at.Before(noon.Add(24 * time.Hour)); at = at.Add(time.Hour) {
		accept(t, a, i.Token(at), at)
	}
	late := noon.Add(24*time.Hour + time.Second)
	refuse(t, a, i.Token(late), late, verify.ErrNoKeys, "502")
}

func TestOneBadKeyDoesNotCostTheOthers(t *testing.T) {
	i, a := start(t)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	add := func(k jose.JSONWebKey) {
		raw, err := k.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, raw)
	}
	for _, text := range []string{`7`, `{}`, `{"kty":"future","kid":"key-0"}`, `{"kty":"RSA","kid":"key-0","n":"%","e":"AQAB"}`} {
		set.Keys = append(set.Keys, json.RawMessage(text))
	}
	add(jose.JSONWebKey{Key: small.Public(), KeyID: "small"})
	add(jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "secret"})
	add(jose.JSONWebKey{Key: oidctest.Key(1).Public(), KeyID: "encryption", Use: "enc"})
	add(jose.JSONWebKey{Key: oidctest.Key(1), KeyID: "private"})
	add(jose.JSONWebKey{Key: oidctest.Key(0).Public(), KeyID: oidctest.KeyID(0)})
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	accept(t, a, i.Token(noon), noon)
	for name, key := range map[string]any{"small": small, "encryption": oidctest.Key(1), "private": oidctest.Key(1)} {
		token := oidctest.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: name}}, oidctest.Claims(noon))
		if err := a.Authenticate(with("Bearer "+token), noon); err == nil {
			t.Errorf("the key %q was used", name)
		}
	}
}

func TestServerOfTheKeysIsDown(t *testing.T) {
	i := oidctest.Start(t)
	c := config(i)
	c.JWKSURL = "http://127.0.0.1:1/certs"
	refuse(t, mustNew(t, c), i.Token(noon), noon, verify.ErrNoKeys, "could not be fetched")
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("waited in vain")
	}
}

func FuzzToken(f *testing.F) {
	i, a := start(f)
	genuine := i.Token(noon)
	parts := strings.Split(genuine, ".")
	for _, seed := range []string{
		"", "Bearer", "Bearer " + genuine, "bearer " + parts[0] + "." + parts[1] + ".", "Bearer ..", "Bearer a.b.c",
		"Bearer eyJhbGciOiJub25lIn0." + parts[1] + ".", "Basic dTpw", "Bearer " + genuine + ".x", "Bearer\t" + genuine,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authorization string) {
		err := a.Authenticate(with(authorization), noon)
		if err == nil {
			// RSA signatures have one form, and so must what they cover.
			if got := strings.Fields(authorization); len(got) != 2 || got[1] != genuine {
				t.Errorf("accepted %q", authorization)
			}
			return
		}
		if verify.Reason(err) == "" || len(authorization) > 20 && strings.Contains(err.Error(), authorization) {
			t.Errorf("%q gives %v", authorization, err)
		}
	})
}
