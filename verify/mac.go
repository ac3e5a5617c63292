package verify

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"sync"
	"time"
)

// maxDigest is the size of the longest digest, SHA-512's.
const maxDigest = sha512.Size

var hashes = map[string]struct {
	new  func() hash.Hash
	size int
}{
	SHA1:   {sha1.New, sha1.Size},
	SHA256: {sha256.New, sha256.Size},
	SHA512: {sha512.New, sha512.Size},
}

// digester is a hash with the buffers that keep its use free of allocations.
type digester struct {
	hash.Hash
	sum     [maxDigest]byte
	scratch [256]byte
}

func (d *digester) writeString(s string) {
	for len(s) > 0 {
		n := copy(d.scratch[:], s)
		d.Write(d.scratch[:n])
		s = s[n:]
	}
}

// key is one secret. It pools its MACs, which hold the expanded key: to expand
// it anew for each request would nearly double the cost of a small one.
type key struct {
	pool  sync.Pool
	until time.Time // zero: no end
}

// newKey tries the key out, because Go's FIPS-only mode panics on SHA-1 and on
// short keys: that must happen now and not in a request.
func newKey(algorithm string, secret []byte, until time.Time) (k *key, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("HMAC with %s and this key is not allowed in FIPS 140-only mode", algorithm)
		}
	}()
	k = &key{until: until}
	k.pool.New = func() any {
		return &digester{Hash: hmac.New(hashes[algorithm].new, secret)}
	}
	d := k.pool.Get().(*digester)
	d.Sum(d.sum[:0])
	k.pool.Put(d)
	return k, nil
}

func (k *key) usable(now time.Time) bool {
	return k.until.IsZero() || now.Before(k.until)
}

// get computes the MAC of the signed bytes. The caller reads sum and puts the
// digester back; after a panic it must not.
func (k *key) get(p payload, v *parts) *digester {
	d := k.pool.Get().(*digester)
	d.Reset()
	p.writeTo(d, v)
	d.Sum(d.sum[:0])
	return d
}
