package verify

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
)

const (
	// maxCandidates bounds how many signatures of a request are compared.
	maxCandidates = 16
	// maxOtherCandidates is the bound where signatures are no HMACs: a public key
	// is a hundred times as much work.
	maxOtherCandidates = 4
	// maxItems bounds how many items of signature headers are looked at. It
	// leaves room for labels of no interest.
	maxItems = 128
)

// extractor finds signatures in headers. It runs before anything about the
// request is proven, so its work is bounded and allocates nothing.
type extractor struct {
	headers   []string // canonical
	separator string   // "": a value is one item
	labels    []string
	prefix    string
	timeLabel string           // the item that holds the timestamp; "" if none does
	encoding  *base64.Encoding // nil: hex
	size      int              // of the digest
	algorithm *Algorithm       // nil: an HMAC
	limit     int              // how many signatures are compared
}

// static reports whether the signature is a text that signs nothing.
func (x *extractor) static() bool { return x.algorithm != nil && x.algorithm.Static }

// signatures is what a request presents.
type signatures struct {
	digests   [maxCandidates][maxDigest]byte
	others    [][]byte // instead of digests, where the algorithm is no HMAC
	n         int      // how many there are
	timestamp string   // of the item labelled so
	items     int      // how many items were looked at
}

// present reports whether the request has any of the signature headers.
func (x *extractor) present(h http.Header) bool {
	for _, name := range x.headers {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// collect reads the signatures and the labelled timestamp from all headers and
// all their lines. Every line may bring the timestamp along, but only the same
// one: to choose between two would be to guess.
func (x *extractor) collect(h http.Header, found *signatures) error {
	for _, name := range x.headers {
		for _, line := range h[name] {
			if err := x.collectLine(line, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *extractor) collectLine(line string, found *signatures) error {
	timed := false
	for more := true; more && found.items < maxItems; found.items++ {
		item := line
		if more = x.separator != ""; more {
			item, line, more = strings.Cut(line, x.separator)
		}
		item = strings.Trim(item, " \t")
		if value, ok := labelled(item, x.timeLabel); ok {
			if timed {
				return ErrUnsigned.because("the signature header repeats its timestamp")
			}
			if found.timestamp != "" && found.timestamp != value {
				return ErrUnsigned.because("the signature headers differ in their timestamps")
			}
			timed, found.timestamp = true, value
			continue
		}
		if found.n == x.limit {
			continue // a timestamp may still follow
		}
		if s, ok := x.signature(item); ok && x.decode(s, found) {
			found.n++
		}
	}
	return nil
}

// signature strips label and prefix; ok is false for an item without them.
func (x *extractor) signature(item string) (s string, ok bool) {
	if len(x.labels) == 0 {
		return strings.CutPrefix(item, x.prefix)
	}
	for _, label := range x.labels {
		if s, ok = labelled(item, label); ok {
			return strings.CutPrefix(s, x.prefix)
		}
	}
	return "", false
}

// decode adds the signature to those that are found, if it is one.
func (x *extractor) decode(s string, found *signatures) bool {
	if x.algorithm == nil {
		return decodeDigest(x.encoding, found.digests[found.n][:x.size], s)
	}
	b, ok := x.algorithm.decode(x.encoding, s)
	if ok {
		found.others = append(found.others, b)
	}
	return ok
}

// labelled returns what follows the label in `v1=...`, `v1,...` and `v1/...`.
func labelled(item, label string) (value string, ok bool) {
	if label == "" || len(item) <= len(label) || item[:len(label)] != label {
		return "", false
	}
	switch item[len(label)] {
	case '=', ',', '/':
		return item[len(label)+1:], true
	}
	return "", false
}

var strictURL = base64.RawURLEncoding.Strict()

// encodings are the strict forms of what signatures are written in; hex has
// none.
var encodings = map[string]*base64.Encoding{
	Hex:       nil,
	Base64:    base64.StdEncoding.Strict(),
	Base64URL: strictURL,
}

// decodeDigest turns the text of a signature into exactly len(dst) bytes. One
// digest has one spelling, but for the case of hex digits and the padding of
// base64url. Nil stands for hex.
func decodeDigest(enc *base64.Encoding, dst []byte, s string) bool {
	var src, out [2 * maxDigest]byte
	if enc == nil {
		if len(s) != hex.EncodedLen(len(dst)) {
			return false
		}
		_, err := hex.Decode(dst, src[:copy(src[:], s)])
		return err == nil
	}
	if enc == strictURL {
		s = trimPadding(s, len(dst))
	}
	if len(s) != enc.EncodedLen(len(dst)) {
		return false
	}
	// The decoder skips line ends, so text of the right length may decode short.
	n, err := enc.Decode(out[:], src[:copy(src[:], s)])
	return err == nil && n == len(dst) && copy(dst, out[:n]) == n
}

// trimPadding drops the padding of n encoded bytes if it is complete.
func trimPadding(s string, n int) string {
	if len(s) == base64.URLEncoding.EncodedLen(n) {
		return strings.TrimSuffix(s, "=="[:(3-n%3)%3])
	}
	return s
}

func encodeDigest(enc *base64.Encoding, digest []byte) string {
	if enc == nil {
		return hex.EncodeToString(digest)
	}
	return enc.EncodeToString(digest)
}
