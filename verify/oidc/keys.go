package oidc

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

const (
	// fetchTimeout bounds one fetch, to the last byte.
	fetchTimeout = 5 * time.Second
	// maxKeySet bounds the answer; Google's is about 2 KB.
	maxKeySet = 256 << 10
	// fetchInterval and fetchBurst bound the fetches that strangers can cause, who
	// may name any key: that many at once, and one more every interval.
	fetchInterval = 10 * time.Second
	fetchBurst    = 3
	// keysFresh is the age at which keys are fetched anew beside the deliveries:
	// so long a key may be used that the issuer has withdrawn.
	keysFresh = time.Hour
	// keysOld is the age at which they are not used any longer, if nothing newer
	// could be fetched.
	keysOld = 24 * time.Hour
)

// keySet holds the keys of an issuer. They are fetched when a delivery first
// needs them, when they are an hour old, and when a token names an unknown key,
// which is how issuers change theirs.
type keySet struct {
	url    string
	warn   func(error)
	client *http.Client

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time     // zero: never
	err     error         // of the last fetch
	flight  chan struct{} // closed when the fetch under way is over; nil: there is none
	due     time.Time     // see mayFetch
}

func newKeySet(url string, warn func(error)) *keySet {
	return &keySet{url: url, warn: warn, client: &http.Client{
		Timeout: fetchTimeout,
		// A redirect could lead away from https.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// find returns the keys of that id, at least one. It waits for a fetch only if
// there is none. The error is of kind ErrForged if the issuer has no such key,
// and of kind ErrNoKeys if that cannot be known for the moment.
func (s *keySet) find(id string, now time.Time) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := now.Sub(s.fetched)
	if age > keysOld {
		s.keys = nil
	}
	known := s.named(id)
	if len(known) == 0 || age > keysFresh {
		s.fetch(now)
	}
	if len(known) > 0 {
		return known, nil
	}
	if s.flight == nil {
		if s.err != nil {
			return nil, s.unavailable()
		}
		return nil, refuse(verify.ErrNoKeys, "the token names an unknown key, and the keys were fetched a moment ago")
	}
	over := s.flight
	s.mu.Unlock()
	<-over
	s.mu.Lock()
	if known = s.named(id); len(known) > 0 {
		return known, nil
	}
	if s.err != nil {
		return nil, s.unavailable()
	}
	return nil, refuse(verify.ErrForged, "the issuer has no key of the name that the token says")
}

// unavailable is the refusal after a fetch that failed.
func (s *keySet) unavailable() error {
	return refuse(verify.ErrNoKeys, s.err.Error())
}

func (s *keySet) named(id string) (keys []jose.JSONWebKey) {
	for _, k := range s.keys {
		if k.KeyID == id {
			keys = append(keys, k)
		}
	}
	return keys
}

// fetch begins a fetch, unless there is one under way or it is too soon. A sender
// that hangs up does not end it: others may wait for the same.
func (s *keySet) fetch(now time.Time) {
	if s.flight != nil || !s.mayFetch(now) {
		return
	}
	over := make(chan struct{})
	s.flight = over
	go func() {
		keys, err := s.get()
		if err != nil {
			err = fmt.Errorf("the keys of the issuer could not be fetched: %w", err)
			s.warn(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flight, s.err = nil, err; err == nil {
			s.keys, s.fetched = keys, now
		}
		close(over)
	}()
}

// mayFetch takes one of the fetches that are allowed. due is when all that were
// allowed will have been paid for; times that come out of order gain nothing.
func (s *keySet) mayFetch(now time.Time) bool {
	if s.due.Before(now) {
		s.due = now
	}
	if s.due.Sub(now) > (fetchBurst-1)*fetchInterval {
		return false
	}
	s.due = s.due.Add(fetchInterval)
	return true
}

// get asks the server. Its errors hold nothing of the answer.
func (s *keySet) get() ([]jose.JSONWebKey, error) {
	resp, err := s.client.Get(s.url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", s.url, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxKeySet:
		return nil, fmt.Errorf("%s answers with more than %d bytes", s.url, maxKeySet)
	}
	keys, err := parseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.url, err)
	}
	return keys, nil
}

// parseKeys returns the usable keys of a set. One that cannot be read, or is for
// something else, must not cost the others.
func parseKeys(data []byte) ([]jose.JSONWebKey, error) {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("the answer is not a JSON Web Key Set")
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if err := k.UnmarshalJSON(raw); err == nil && usable(&k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the set holds no key for signatures with RS256 or ES256")
	}
	return keys, nil
}

// usable reports whether a key is for checking signatures that are accepted.
func usable(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" || k.Algorithm != "" && !slices.Contains(algorithms, jose.SignatureAlgorithm(k.Algorithm)) {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.Size() >= 2048/8
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize == 256
	}
	return false // a symmetric or private key has no business there
}
