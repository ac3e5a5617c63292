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

// zstdWindow is the window that a zstd body may ask for: what RFC 9659 allows.
const zstdWindow = 8 << 20

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

// decoder returns a reader of what a body holds. It takes no more of the body
// than belongs to it.
func decoder(coding string, body *bytes.Reader) (r io.ReadCloser, err error) {
	switch coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(body)
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
