package verify

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"slices"
	"sync"
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

// mac makes HMACs with one key. It pools its hashes, which hold the expanded
// key: to expand it anew for each request would nearly double the cost of a
// small one.
type mac struct {
	pool sync.Pool
	size int
}

// newMAC tries the key out, because Go's FIPS-only mode panics on SHA-1 and on
// short keys: that must happen now and not in a request.
func newMAC(algorithm string, secret []byte) (m *mac, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("HMAC with %s and this key is not allowed in FIPS 140-only mode", algorithm)
		}
	}()
	m = &mac{size: hashes[algorithm].size}
	m.pool.New = func() any {
		return &digester{Hash: hmac.New(hashes[algorithm].new, secret)}
	}
	d := m.pool.Get().(*digester)
	d.Sum(d.sum[:0])
	m.pool.Put(d)
	return m, nil
}

// get computes the MAC of the signed bytes. The caller reads sum and puts the
// digester back; after a panic it must not.
func (m *mac) get(p payload, v *parts) *digester {
	d := m.pool.Get().(*digester)
	d.Reset()
	p.writeTo(d, v)
	d.Sum(d.sum[:0])
	return d
}

// message is the template of a message that has been put together already.
var message = payload{{part: partBody}}

// of returns the MAC of a message.
func (m *mac) of(signed []byte) []byte {
	d := m.get(message, &parts{body: signed})
	defer m.pool.Put(d)
	return slices.Clone(d.sum[:m.size])
}
