package caddymodule

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// bothHeaders runs a test with a header apart, and with one in place.
func bothHeaders(t *testing.T, test func(t *testing.T, inPlace bool)) {
	t.Helper()
	t.Run("apart", func(t *testing.T) { test(t, false) })
	t.Run("in place", func(t *testing.T) { test(t, true) })
}

// overTheWire returns what a client gets from an answer that went through a
// recorder, and the answer's body.
func overTheWire(t *testing.T, inPlace bool, method string, limit int64, answer http.HandlerFunc) (*http.Response, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-First", "1")
		rec := newRecorder(w, r.Method, limit, dedupe.ResultFirst, onward)
		rec.setHeader(inPlace)
		answer(rec, r)
		rec.finish()
	}))
	defer server.Close()
	r, err := http.NewRequest(method, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestTrailersReachTheSender(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		for name, limit := range map[string]int64{"held": 100, "streamed": 3} {
			resp, body := overTheWire(t, inPlace, "POST", limit, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Announced")
				w.Header().Set("X-Before", "1")
				w.WriteHeader(200)
				_, _ = io.WriteString(w, "hello")
				w.Header().Set("X-Announced", "a")
				w.Header().Set(http.TrailerPrefix+"X-Late", "b")
			})
			if body != "hello" || resp.Header.Get("X-Before") != "1" || resp.Header.Get("X-Announced") != "" {
				t.Errorf("%s: got %q, %v", name, body, resp.Header)
			}
			if resp.Trailer.Get("X-Announced") != "a" || resp.Trailer.Get("X-Late") != "b" {
				t.Errorf("%s: got trailers %v", name, resp.Trailer)
			}
		}
	})
}

func TestTrailersWithoutAnnouncementReachTheSender(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		for name, body := range map[string]string{"held": "hello", "streamed": strings.Repeat("hello", 1000)} {
			resp, got := overTheWire(t, inPlace, "POST", 100, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, body)
				w.Header().Set(http.TrailerPrefix+"X-Late", "b")
			})
			if got != body || resp.Trailer.Get("X-Late") != "b" {
				t.Errorf("%s: got %d bytes, trailers %v", name, len(got), resp.Trailer)
			}
		}
	})
}

func TestAnswersWithoutABodyKeepTheirHead(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		for name, c := range map[string]struct {
			method string
			status int
			length int64
		}{
			"HEAD": {"HEAD", 200, 5},
			"204":  {"POST", 204, 0},
			"304":  {"POST", 304, 0},
		} {
			resp, body := overTheWire(t, inPlace, c.method, 100, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5")
				w.Header().Set("Etag", `"x"`)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "hello") // as a careless handler does
			})
			if body != "" || resp.StatusCode != c.status || resp.Header.Get("Etag") != `"x"` {
				t.Errorf("%s: got %d %q %v", name, resp.StatusCode, body, resp.Header)
			}
			if c.method == "HEAD" && resp.ContentLength != c.length {
				t.Errorf("%s: length %d", name, resp.ContentLength)
			}
		}
	})
}

func TestLongAnswerArrivesWhole(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		long := strings.Repeat("0123456789", 50_000)
		resp, body := overTheWire(t, inPlace, "POST", 1000, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, strings.NewReader(long))
		})
		if body != long || resp.Header.Get(resultHeader) != "first" {
			t.Errorf("got %d bytes, %v", len(body), resp.Header)
		}
	})
}

// lateHead is a writer of a handler before, such as encode, that writes the head no
// sooner than the body.
type lateHead struct {
	http.ResponseWriter
	status int
}

func (w *lateHead) WriteHeader(status int) { w.status = status }

func (w *lateHead) Write(p []byte) (int, error) {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
		w.status = 0
	}
	return w.ResponseWriter.Write(p)
}

// TestWhatComesAfterTheStatusIsNotInTheHead: however late the head is written, with
// and without trailers, held and streamed.
func TestWhatComesAfterTheStatusIsNotInTheHead(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		for _, limit := range []int64{100, 3} {
			for _, trailer := range []string{"", "X-Late"} {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					rec := newRecorder(&lateHead{ResponseWriter: w}, r.Method, limit, dedupe.ResultFirst, onward)
					rec.setHeader(inPlace)
					rec.Header().Set(resultHeader, "of the upstream")
					rec.Header().Set("X-Head", "1")
					if trailer != "" {
						rec.Header().Set("Trailer", trailer)
					}
					write(t, rec, "hello")
					if trailer != "" || limit == 3 { // else the head is still to come
						rec.Header().Set("X-Head", "2")
						rec.Header().Set("X-Late", "1")
					}
					rec.finish()
				}))
				resp, err := server.Client().Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				server.Close()
				if resp.Header.Get("X-Head") != "1" || resp.Header.Get("X-Late") != "" || !slices.Equal(resp.Header.Values(resultHeader), []string{"first"}) {
					t.Errorf("limit %d, trailer %q: got %v", limit, trailer, resp.Header)
				}
				if trailer != "" && resp.Trailer.Get(trailer) != "1" {
					t.Errorf("limit %d: got the trailers %v", limit, resp.Trailer)
				}
			}
		}
	})
}

// recoding is a writer of a handler before, such as encode, that makes another body
// of what it gets, whose length it cannot know.
type recoding struct{ *httptest.ResponseRecorder }

func (w recoding) Write(p []byte) (int, error) {
	w.Header().Del("Content-Length")
	return w.ResponseRecorder.Write(p)
}

// TestCutOffAnswerIsSeenThoughItIsRecoded: what the upstream said of its length
// counts, and not what became of that.
func TestCutOffAnswerIsSeenThoughItIsRecoded(t *testing.T) {
	bothHeaders(t, func(t *testing.T, inPlace bool) {
		for _, trailer := range []string{"", "X-Late"} {
			for length, whole := range map[string]bool{"5": true, "9": false} {
				rec := newRecorder(recoding{httptest.NewRecorder()}, "POST", 3, dedupe.ResultFirst, onward)
				rec.setHeader(inPlace)
				rec.Header().Set("Content-Length", length)
				if trailer != "" {
					rec.Header().Set("Trailer", trailer)
				}
				write(t, rec, "hello")
				if got := rec.answer(); got.whole != whole || !got.begun {
					t.Errorf("length %s, trailer %q: got %+v", length, trailer, got)
				}
			}
		}
	})
}
