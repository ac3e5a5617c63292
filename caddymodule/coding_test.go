package caddymodule

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// codings are the ones that are undone, as a body is encoded in them.
var codings = []string{"gzip", "x-gzip", "deflate", "raw deflate", "zstd"}

func TestEveryCodingIsUndone(t *testing.T) {
	for _, coding := range codings {
		name := strings.TrimPrefix(coding, "raw ")
		for _, text := range []string{"", "x", `{"id":1}`, strings.Repeat("0123456789", 100_000)} {
			wire := encoded(t, coding, text)
			got, err := decode(name, wire, int64(len(text)), free)
			if err != nil || string(got) != text {
				t.Errorf("%s: %d bytes of %d, %v", coding, len(got), len(text), err)
			}
			if text == "" {
				continue
			}
			if _, err := decode(name, wire, int64(len(text))-1, free); !errors.As(err, new(errTooLarge)) {
				t.Errorf("%s, one byte over the limit: %v", coding, err)
			}
			if got, err := decode(name, wire[:len(wire)-1], 1<<20, free); err == nil {
				t.Errorf("%s, cut off: %d bytes", coding, len(got))
			}
			if got, err := decode(name, append(bytes.Clone(wire), "more"...), 1<<20, free); !errors.Is(err, errMalformed) {
				t.Errorf("%s, with more behind it: %d bytes, %v", coding, len(got), err)
			}
		}
	}
	// What is signed as a whole must not be cut in two by a stranger.
	members := append(encoded(t, "gzip", "first"), encoded(t, "gzip", "second")...)
	if got, err := decode("gzip", members, 1<<20, free); !errors.Is(err, errMalformed) {
		t.Errorf("two members: %q, %v", got, err)
	}
	if _, err := decode("br", []byte("x"), 10, free); !errors.As(err, new(errUnknownCoding)) {
		t.Errorf("an unknown coding: %v", err)
	}
	if got, err := decode("", []byte("x"), 10, nil); err != nil || string(got) != "x" {
		t.Errorf("no coding: %q, %v", got, err)
	}
}

func TestCodingIsNamedInAnyWay(t *testing.T) {
	for line, want := range map[string]string{"": "", "identity": "", " GZip ": "gzip", "Identity": "", "gzip, br": "gzip, br"} {
		if got := codingOf(http.Header{"Content-Encoding": {line}}); got != want {
			t.Errorf("%q is %q", line, got)
		}
	}
	if got := codingOf(http.Header{"Content-Encoding": {"gzip", "gzip"}}); got != "gzip, gzip" {
		t.Errorf("two lines are %q", got)
	}
}

// bomb is about n bytes of zeros.
func bomb(t testing.TB, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := io.CopyN(w, zeros{}, n); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestDecodingStaysWithinItsLimitAndItsRoom(t *testing.T) {
	wire := bomb(t, 64<<20)
	var taken int64
	_, err := decode("gzip", wire, 1<<20, func(n int64) error { taken += n; return nil })
	if !errors.As(err, new(errTooLarge)) || taken > 1<<20+1 {
		t.Errorf("%v after %d bytes", err, taken)
	}
	for _, coding := range codings {
		full := func(int64) error { return errNoRoom }
		if _, err := decode(strings.TrimPrefix(coding, "raw "), encoded(t, coding, "x"), 10, full); !errors.Is(err, errNoRoom) {
			t.Errorf("%s without room: %v", coding, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, coding := range codings {
		name := strings.TrimPrefix(coding, "raw ")
		f.Add(name, encoded(f, coding, `{"id":"evt_1"}`))
		f.Add(name, encoded(f, coding, strings.Repeat("x", 5000)))
		f.Add(name, []byte("x"))
	}
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		const limit = 4096
		var taken int64
		got, err := decode(coding, body, limit, func(n int64) error { taken += n; return nil })
		switch {
		case err == nil && coding != "" && len(body) > 0 && len(got) > limit:
			t.Errorf("%d bytes over the limit", len(got))
		case err != nil && !errors.As(err, new(errUnknownCoding)) && !errors.As(err, new(errTooLarge)) && !errors.Is(err, errMalformed):
			t.Errorf("an error of no kind: %v", err)
		case taken > limit+1+zstdMemory:
			t.Errorf("%d bytes of memory", taken)
		}
		beginsWith(coding, body, "ab")
	})
}

// decodedRoute has its id in the JSON body and a signature over signed.
func decodedRoute(signed string, lines ...string) string {
	return `route {
		webhook_dedupe {
			source $SOURCE
			secret $SECRET
			signature {
				header X-Signature
			}
			event_id json id
			log_field kind json kind
			signed_body ` + signed + "\n" + strings.Join(lines, "\n") + `
		}
		upstream
	}`
}

// posted is a delivery of a body in a coding, with a signature over signed.
func posted(coding string, wire []byte, signed string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gateway.test/hook", bytes.NewReader(wire))
	r.Header.Set("X-Signature", hmacHex(signed))
	if coding != "" {
		r.Header.Set("Content-Encoding", coding)
	}
	return r
}

func TestSignatureCoversTheBodyAsTheRouteSays(t *testing.T) {
	const text = `{"id":"evt_1","kind":"paid"}`
	for _, coding := range codings {
		wire := encoded(t, coding, text)
		name := strings.TrimPrefix(coding, "raw ")
		for _, mode := range []string{"wire", "decoded"} {
			var got []byte
			var header string
			g := newGateway(t, decodedRoute(mode), func(_ http.ResponseWriter, r *http.Request) error {
				got, _ = io.ReadAll(r.Body)
				header = r.Header.Get("Content-Encoding")
				if r.ContentLength != int64(len(wire)) {
					t.Errorf("%s, %s: a length of %d", coding, mode, r.ContentLength)
				}
				return nil
			})
			right, wrong := string(wire), text
			if mode == "decoded" {
				right, wrong = wrong, right
			}
			expect(t, g.do(posted(name, wire, wrong)), 401, "")
			expect(t, g.do(posted(name, wire, right)), 502, "first") // the upstream answers nothing
			if !bytes.Equal(got, wire) || header != name {
				t.Errorf("%s, %s: the upstream got %d bytes of %d as %q", coding, mode, len(got), len(wire), header)
			}
			if line := g.logs.last(t, "delivery"); line["event_id"] != "evt_1" || line["kind"] != "paid" {
				t.Errorf("%s, %s: the log says %v", coding, mode, line)
			}
			if n := buffers.used.Load(); n != 0 {
				t.Errorf("%s, %s: %d bytes are still taken", coding, mode, n)
			}
		}
	}
}

// Who has one delivery can compress it in many ways, and its signature holds for
// each of them.
func TestAnotherCompressionIsNoOtherEvent(t *testing.T) {
	const text = `{"id":"evt_1"}`
	var calls atomic.Int64
	g := newGateway(t, decodedRoute("decoded"), counting(&calls))
	want := "first"
	for _, coding := range append(codings, "") {
		expect(t, g.do(posted(strings.TrimPrefix(coding, "raw "), encoded(t, coding, text), text)), 200, want)
		want = "duplicate"
	}
	if calls.Load() != 1 {
		t.Errorf("%d came through", calls.Load())
	}
}

func TestBodyThatCannotBeDecodedIsRefused(t *testing.T) {
	const text = `{"id":"evt_1"}`
	large := bomb(t, 30<<20)
	for name, c := range map[string]struct {
		coding string
		wire   []byte
		status int
		reason string
	}{
		"unknown":       {"br", []byte("neither"), 415, "encoding"},
		"two":           {"gzip, gzip", encoded(t, "gzip", text), 415, "encoding"},
		"not gzip":      {"gzip", []byte("neither"), 400, "encoding"},
		"cut off":       {"gzip", encoded(t, "gzip", text)[:20], 400, "encoding"},
		"a bomb":        {"gzip", large, 413, "too_large"},
		"not what zstd": {"zstd", []byte("neither"), 400, "encoding"},
	} {
		for _, mode := range []string{"wire", "decoded"} {
			var calls atomic.Int64
			g := newGateway(t, decodedRoute(mode), counting(&calls))
			expect(t, g.do(posted(c.coding, c.wire, string(c.wire))), c.status, "")
			line := g.logs.last(t, "delivery")
			if line["reason"] != c.reason || calls.Load() != 0 || g.store.calls.Load() != 0 || buffers.used.Load() != 0 {
				t.Errorf("%s, %s: %v; %d came through", name, mode, line, calls.Load())
			}
		}
	}
}

func TestUndecodableBodyPassesWhereNobodyLooksIntoIt(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, handshakeRoute("none"), counting(&calls))
	for _, coding := range []string{"br", "gzip"} {
		r := posted(coding, []byte("neither"), "neither")
		r.Header.Set("X-Id", coding)
		expect(t, g.do(r), 200, "first")
	}
}

// Some senders name a charset there.
func TestWrongContentEncodingOfAPlainBodyDoesNoHarm(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, decodedRoute("wire"), counting(&calls))
	expect(t, g.do(posted("utf-8", []byte(`{"id":"evt_1"}`), `{"id":"evt_1"}`)), 200, "first")
}

func TestHandshakeIsSeenInACompressedBody(t *testing.T) {
	const text = `{"type":"url_verification","challenge":"x"}`
	for _, mode := range []string{"wire", "decoded"} {
		var calls atomic.Int64
		g := newGateway(t, handshakeRoute("slack", "signed_body "+mode), counting(&calls))
		wire := encoded(t, "gzip", text)
		signed := map[string]string{"wire": string(wire), "decoded": text}[mode]
		expect(t, g.do(posted("gzip", wire, signed)), 200, "")
		if calls.Load() != 1 || g.store.calls.Load() != 0 {
			t.Errorf("%s: %d came through", mode, calls.Load())
		}
	}
}

func TestReplayGuardKnowsBytesInEveryCompression(t *testing.T) {
	site := strings.Replace(strings.Replace(decodedRoute("decoded"), "event_id json id", "event_id header X-Id", 1),
		"header X-Signature", "header X-Signature\npayload {timestamp}.{body}\ntimestamp header X-Time", 1)
	var calls atomic.Int64
	g := newGateway(t, strings.Replace(site, "signed_body", "tolerance off\nsigned_body", 1), counting(&calls))
	for i, want := range []int{200, 503} {
		coding := codings[i]
		r := posted(coding, encoded(t, coding, "{}"), "1767225600.{}")
		r.Header.Set("X-Time", "1767225600")
		r.Header.Set("X-Id", coding)
		if resp := g.do(r); resp.StatusCode != want {
			t.Errorf("%s: got %d", coding, resp.StatusCode)
		}
	}
}
