package token

import (
	"strconv"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestOnlyTheTokenItselfIsAccepted(t *testing.T) {
	secret := []byte("t0ken")
	k, err := newKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	secret[0] = 'T' // the key is a copy
	for presented, want := range map[string]bool{"t0ken": true, "": false, "t0ke": false, "t0kenn": false, "T0ken": false, "t0ken\x00": false} {
		if got := k.Verify([]byte("any"), []byte(presented)); got != want {
			t.Errorf("%q: %v", presented, got)
		}
	}
	for i := range 2000 { // of so many some begin alike, hashed
		if k.Verify(nil, []byte(strconv.Itoa(i))) {
			t.Errorf("%d is taken for the token", i)
		}
	}
	if s, err := k.(verify.Signer).Sign(nil); err != nil || string(s) != "t0ken" {
		t.Errorf("%q, %v", s, err)
	}
}
