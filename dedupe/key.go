package dedupe

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// maxReadableID is the longest id that is kept readable in a key. Longer ones
// are hashed, which bounds what a hostile id can cost a store.
const maxReadableID = 64

// hashedIDMark begins the part of a key that stands for a hashed id. It cannot
// begin a readable one.
const hashedIDMark = "#"

// Key names an event in a store: "<source>:<id>", or "<source>:<id>~<body>"
// with a fingerprint of the body. The id is exact, case included; it is kept
// readable where it is short and plain, and hashed otherwise. Sources hold no
// colon (see [CheckSource]) and neither form of an id holds a tilde, so that
// two events never share a key.
func Key(source, id, fingerprint string) string {
	var b strings.Builder
	b.Grow(len(source) + len(id) + len(fingerprint) + 2)
	b.WriteString(source)
	b.WriteByte(':')
	if readable(id) {
		b.WriteString(id)
	} else {
		b.WriteString(hashedIDMark)
		b.WriteString(shortHash(id))
	}
	if fingerprint != "" {
		b.WriteByte('~')
		b.WriteString(fingerprint)
	}
	return b.String()
}

// BindingKey names the binding of signed bytes, given by their SHA-256, within
// a source.
func BindingKey(source string, signed [sha256.Size]byte) string {
	return source + ":" + base64.RawURLEncoding.EncodeToString(signed[:24])
}

// BindingValue is the value that stands for an id in a binding: short, and of
// one length whatever the id.
func BindingValue(id string) string { return shortHash(id)[:16] }

// CheckSource reports why source cannot be used in a key, or nil.
func CheckSource(source string) error {
	switch {
	case source == "":
		return errors.New("the source is empty")
	case len(source) > 64:
		return errors.New("the source is longer than 64 characters")
	}
	for _, c := range []byte(source) {
		if !plain(c) || c == ':' {
			return errors.New("the source may hold only A-Z a-z 0-9 _ . -")
		}
	}
	return nil
}

// Fingerprint is the short form of a body's SHA-256 that goes into a key.
func Fingerprint(sum [sha256.Size]byte) string {
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// MarkOf is the small fingerprint of a body that a finished event keeps, made of
// its checksum.
func MarkOf(checksum uint32) uint16 { return uint16(checksum % (MaxMark + 1)) }

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

func readable(id string) bool {
	if id == "" || len(id) > maxReadableID {
		return false
	}
	for i := range len(id) {
		if !plain(id[i]) {
			return false
		}
	}
	return true
}

func plain(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '_' || c == '.' || c == ':' || c == '-'
}
