package caddymodule

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// bodyOf is a request with a body, whose length is told or not.
func bodyOf(body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Body = io.NopCloser(body)
	r.ContentLength = length
	return r
}

func TestBodyIsReadUpToItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		size, length, limit int64
		tooLarge            bool
	}{
		"empty":                  {0, 0, 10, false},
		"empty, chunked":         {0, -1, 10, false},
		"small":                  {5, 5, 10, false},
		"exactly":                {10, 10, 10, false},
		"exactly, chunked":       {10, -1, 10, false},
		"one more":               {11, 11, 10, true},
		"one more, chunked":      {11, -1, 10, true},
		"much more":              {1 << 20, -1, 10, true},
		"large":                  {1 << 20, 1 << 20, 1 << 20, false},
		"large, chunked":         {1 << 20, -1, 1 << 20, false},
		"over the first reading": {firstRead + 1, firstRead + 1, 1 << 20, false},
	} {
		want := bytes.Repeat([]byte("x"), int(c.size))
		got, err := readBody(bodyOf(bytes.NewReader(want), c.length), c.limit, free)
		var tooLarge errTooLarge
		if errors.As(err, &tooLarge) != c.tooLarge || (err != nil) != c.tooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
		if int64(len(got)) > c.limit+1 {
			t.Errorf("%s: %d bytes were read", name, len(got))
		}
	}
}

func TestBodyThatIsToldTooLargeIsNotTouched(t *testing.T) {
	r := bodyOf(failingReader{}, 11)
	if got, err := readBody(r, 10, free); got != nil || !errors.As(err, new(errTooLarge)) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBodyThatIsCutOffIsNoBody(t *testing.T) {
	got, err := readBody(bodyOf(io.MultiReader(strings.NewReader("half"), failingReader{}), 8), 10, free)
	if string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(errTooLarge)) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnotherLimitIsNamed(t *testing.T) {
	r := bodyOf(strings.NewReader("0123456789"), -1)
	r.Body = http.MaxBytesReader(nil, r.Body, 4)
	_, err := readBody(r, 100, free)
	if tooLarge := (errTooLarge{}); !errors.As(err, &tooLarge) || tooLarge.limit != 4 {
		t.Errorf("got %v", err)
	}
}

func TestMemoryGrowsWithWhatCame(t *testing.T) {
	got, err := readBody(bodyOf(strings.NewReader("little"), 24<<20), 25<<20, free)
	if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > firstRead {
		t.Errorf("%d bytes allocated, %v", cap(got), err)
	}
}

func TestBodyIsPassedOnWithItsLength(t *testing.T) {
	r := bodyOf(strings.NewReader("x"), -1)
	r.TransferEncoding = []string{"chunked"}
	r.Trailer = http.Header{"X": nil}
	r.Header.Set("Trailer", "X")
	r.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	setBody(r, []byte("hello"))
	got, _ := io.ReadAll(r.Body)
	if string(got) != "hello" || r.ContentLength != 5 || r.TransferEncoding != nil || r.GetBody != nil || r.Trailer != nil || r.Header.Get("Trailer") != "" {
		t.Errorf("got %q, %+v", got, r)
	}
	setBody(r, nil)
	if r.Body != http.NoBody || r.ContentLength != 0 {
		t.Errorf("an empty body is %v with length %d", r.Body, r.ContentLength)
	}
}

func TestResumedBodyIsComplete(t *testing.T) {
	closed := false
	r := bodyOf(strings.NewReader("hello world"), -1)
	r.Body = closer{r.Body, &closed}
	read := make([]byte, 5)
	_, _ = io.ReadFull(r.Body, read)
	resumeBody(r, read)
	got, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if string(got) != "hello world" || !closed {
		t.Errorf("got %q, closed %v", got, closed)
	}
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error { *c.closed = true; return nil }

func TestTransportNeverSendsTwiceByItself(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		r := bodyOf(http.NoBody, 0)
		r.Header.Set(name, "k")
		r.Header.Set("X-Other", "o")
		sendOnce(r)
		if _, canonical := r.Header[name]; canonical {
			t.Errorf("%s is there under its canonical name", name)
		}
		if got := r.Header[strings.ToLower(name)]; len(got) != 1 || got[0] != "k" || r.Header.Get("X-Other") != "o" {
			t.Errorf("got %v", r.Header)
		}
		r = bodyOf(strings.NewReader("x"), 1)
		r.Header.Set(name, "k")
		sendOnce(r)
		if r.Header.Get(name) != "k" {
			t.Errorf("%s was renamed though a body cannot be sent twice", name)
		}
	}
}

func FuzzReadBody(f *testing.F) {
	f.Add([]byte("hello"), int64(5), int64(5), false)
	f.Add([]byte("hello"), int64(-1), int64(4), true)
	f.Fuzz(func(t *testing.T, body []byte, length, limit int64, cut bool) {
		if limit < 0 || limit > 1<<20 || length > int64(len(body)) {
			return
		}
		var reader io.Reader = bytes.NewReader(body)
		if cut {
			reader = io.MultiReader(reader, failingReader{})
		}
		got, err := readBody(bodyOf(reader, length), limit, free)
		if int64(len(got)) > limit+1 {
			t.Fatalf("%d bytes over a limit of %d", len(got), limit)
		}
		if err == nil && length != 0 && (cut && int64(len(body)) <= limit || !bytes.Equal(got, body)) {
			t.Fatalf("got %q of %q", got, body)
		}
	})
}

// free is memory without end.
func free(int64) error { return nil }

// TestMethodThatMayBeRepeatedIsNotSentTwice: Go's transport repeats it by itself
// unless there is a body, be it an empty one.
func TestMethodThatMayBeRepeatedIsNotSentTwice(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		r := httptest.NewRequest(method, "/", nil)
		setBody(r, nil)
		sendOnce(r)
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
			t.Errorf("%s: body %v of length %d", method, r.Body, r.ContentLength)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	setBody(r, nil)
	sendOnce(r)
	if r.ContentLength != 0 {
		t.Error("a POST would be sent in chunks")
	}
}

// deadlineWriter notes the read deadlines that are set.
type deadlineWriter struct {
	http.ResponseWriter
	set []time.Time
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error {
	w.set = append(w.set, t)
	return nil
}

// TestTimeIsLimitedBeforeAnyReadingMayTakeLong: without a time limit of Caddy's
// own before the first one, with it before the second; and the limit is lifted.
func TestTimeIsLimitedBeforeAnyReadingMayTakeLong(t *testing.T) {
	until := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		idle    caddy.Duration
		pieces  int
		limited bool
	}{
		"at once":                       {caddy.Duration(time.Minute), 1, false},
		"in pieces":                     {caddy.Duration(time.Minute), 3, true},
		"at once, without idle limit":   {-1, 1, true},
		"in pieces, without idle limit": {-1, 3, true},
	} {
		w := &deadlineWriter{ResponseWriter: httptest.NewRecorder()}
		var pieces []io.Reader
		for range c.pieces {
			pieces = append(pieces, iotest.DataErrReader(strings.NewReader("piece")))
		}
		r := bodyOf(io.MultiReader(pieces...), int64(5*c.pieces))
		timed := limitReading(w, r, &caddyhttp.Server{ReadIdleTimeout: c.idle}, until)
		if _, err := readBody(r, 100, free); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		timed.done()
		want := []time.Time{until, {}}
		if !c.limited {
			want = nil
		}
		if !slices.Equal(w.set, want) {
			t.Errorf("%s: the deadlines are %v, want %v", name, w.set, want)
		}
	}
}
