package caddymodule

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// overTheWire returns what a client gets from an answer that went through a
// recorder, and the answer's body.
func overTheWire(t *testing.T, method string, limit int64, answer http.HandlerFunc) (*http.Response, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := newRecorder(w, r.Method, limit, dedupe.ResultFirst, onward)
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
	for name, limit := range map[string]int64{"held": 100, "streamed": 3} {
		resp, body := overTheWire(t, "POST", limit, func(w http.ResponseWriter, _ *http.Request) {
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
}

func TestTrailersWithoutAnnouncementReachTheSender(t *testing.T) {
	for name, body := range map[string]string{"held": "hello", "streamed": strings.Repeat("hello", 1000)} {
		resp, got := overTheWire(t, "POST", 100, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
			w.Header().Set(http.TrailerPrefix+"X-Late", "b")
		})
		if got != body || resp.Trailer.Get("X-Late") != "b" {
			t.Errorf("%s: got %d bytes, trailers %v", name, len(got), resp.Trailer)
		}
	}
}

func TestAnswersWithoutABodyKeepTheirHead(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		status int
		length int64
	}{
		"HEAD": {"HEAD", 200, 5},
		"204":  {"POST", 204, 0},
		"304":  {"POST", 304, 0},
	} {
		resp, body := overTheWire(t, c.method, 100, func(w http.ResponseWriter, _ *http.Request) {
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
}

func TestLongAnswerArrivesWhole(t *testing.T) {
	long := strings.Repeat("0123456789", 50_000)
	resp, body := overTheWire(t, "POST", 1000, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader(long))
	})
	if body != long || resp.Header.Get(resultHeader) != "first" {
		t.Errorf("got %d bytes, %v", len(body), resp.Header)
	}
}
