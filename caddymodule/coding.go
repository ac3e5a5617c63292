package caddymodule

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The window that a zstd body may ask for is what RFC 9659 allows. Decoding takes
// it, and about a block more.
const (
	zstdWindow = 8 << 20
	zstdMemory = zstdWindow + 1<<20
)

// errMalformed is a body that is not in its own content coding.
var errMalformed = errors.New("the body is not what its Content-Encoding says")

// errUnknownCoding is a content coding that is not undone here.
type errUnknownCoding struct{ coding string }

func (e errUnknownCoding) Error() string {
	return fmt.Sprintf("the Content-Encoding %q is none of gzip, deflate and zstd", shortened(e.coding))
}

// codingOf returns the content coding of a message, "" if there is none.
func codingOf(h http.Header) string {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ", ")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// decode undoes a content coding. What comes out is bounded by limit, and the
// memory for it is asked for as for a body that is read. The error is an
// errUnknownCoding, an errTooLarge, errMalformed or that of grow.
func decode(coding string, body []byte, limit int64, grow func(int64) error) ([]byte, error) {
	if coding == "" || len(body) == 0 {
		return body, nil
	}
	if coding == "zstd" {
		if err := grow(zstdMemory); err != nil {
			return nil, err
		}
	}
	rest := bytes.NewReader(body)
	r, err := decoder(coding, rest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	decoded, err := readGrowing(r, limit+1, grow)
	switch {
	case errors.Is(err, errNoRoom):
		return nil, err
	case int64(len(decoded)) > limit:
		return nil, errTooLarge{limit}
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	case rest.Len() > 0: // what another decoder might make something of
		return nil, fmt.Errorf("%w: there is more behind its end", errMalformed)
	}
	return decoded, nil
}

// decoder returns a reader of what a body holds. It takes no more of the body
// than belongs to it.
func decoder(coding string, body *bytes.Reader) (r io.ReadCloser, err error) {
	switch coding {
	case "gzip", "x-gzip":
		var z *gzip.Reader
		if z, err = gzip.NewReader(body); err == nil {
			z.Multistream(false) // of several members many decoders see the first only
			r = z
		}
	case "deflate":
		if !zlibHeader(body) { // many send it without the wrapping that HTTP wants
			return flate.NewReader(body), nil
		}
		r, err = zlib.NewReader(body)
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err == nil {
			r = z.IOReadCloser()
		}
	default:
		return nil, errUnknownCoding{coding}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return r, nil
}

// zlibHeader reports whether a body begins as RFC 1950 says.
func zlibHeader(body *bytes.Reader) bool {
	var head [2]byte
	n, _ := body.ReadAt(head[:], 0)
	return n == 2 && head[0]&0x0f == 8 && head[0]>>4 <= 7 && binary.BigEndian.Uint16(head[:])%31 == 0
}

// beginsWith reports whether the content of a body, or of its beginning, begins
// with prefix.
func beginsWith(coding string, body []byte, prefix string) bool {
	if coding == "" || prefix == "" {
		return strings.HasPrefix(string(body[:min(len(body), len(prefix))]), prefix)
	}
	r, err := decoder(coding, bytes.NewReader(body))
	if err != nil {
		return false
	}
	defer r.Close()
	head := make([]byte, len(prefix))
	_, err = io.ReadFull(r, head)
	return err == nil && string(head) == prefix
}
