package dedupe

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"sync/atomic"
)

// tokens makes the tokens of claims: the name of this run of the process and a
// count, so that no two claims anywhere have the same.
type tokens struct {
	run   string
	count *atomic.Uint64
}

func newTokens() tokens {
	var b [9]byte
	rand.Read(b[:]) // never fails, by its contract
	return tokens{run: base64.RawURLEncoding.EncodeToString(b[:]) + "-", count: new(atomic.Uint64)}
}

func (t tokens) next() string {
	b := append(make([]byte, 0, 32), t.run...)
	return string(strconv.AppendUint(b, t.count.Add(1), 36))
}
