package caddymodule

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// cutOffBody breaks off after its first bytes.
func cutOffBody(text string) io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader(text), failingReader{}))
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRefusalsAreAnsweredByTheGateway(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*http.Request)
		status int
		reason string
	}{
		"another method":    {func(r *http.Request) { r.Method = http.MethodPut }, 405, "method"},
		"no signature":      {func(r *http.Request) { r.Header.Del("Stripe-Signature") }, 403, "unsigned"},
		"changed body":      {func(r *http.Request) { setBody(r, []byte(`{"id":"evt_2"}`)) }, 403, "forged"},
		"cut off":           {func(r *http.Request) { r.Body = cutOffBody(`{"id"`) }, 400, "incomplete_body"},
		"too large":         {func(r *http.Request) { r.ContentLength = 501 }, 413, "too_large"},
		"too large, untold": {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(endless{}), -1 }, 413, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			// The site's error handler would turn every error into a 200.
			g := newGateway(t, `handle_errors {
				respond "all is well" 200
			}
			`+strings.Replace(stripeRoute, "source", "max_body 500B\nreject_status 403\nsource", 1), counting(&calls))
			r := signed(t, "stripe", "evt_1")
			c.spoil(r)
			resp := g.do(r)
			if body, _ := io.ReadAll(resp.Body); resp.StatusCode != c.status || len(body) > 0 {
				t.Errorf("got %d with %q", resp.StatusCode, body)
			}
			if resp.StatusCode == 405 && resp.Header.Get("Allow") != "POST" {
				t.Errorf("Allow is %q", resp.Header.Get("Allow"))
			}
			if n := count(t, "rejections_total", "source", g.source, "reason", c.reason); n != 1 {
				t.Errorf("%v rejections counted as %s", n, c.reason)
			}
			if calls.Load() != 0 || g.store.calls.Load() != 0 {
				t.Errorf("%d calls of the upstream, %d of the store", calls.Load(), g.store.calls.Load())
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestRefusalByStatusOfTheReason(t *testing.T) {
	missing := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	for name, body := range map[string]string{
		"missing id": `{"type":"x"}`, "ambiguous id": `{"id":"a","id":"b"}`, "bad id": `{"id":{}}`, "no JSON": `id=evt_1`,
	} {
		if resp := missing.send("stripe", "evt_1", body); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d", name, resp.StatusCode)
		}
	}
}

func TestStaleDeliveryStaysRetryable(t *testing.T) {
	g := newGateway(t, strings.Replace(stripeRoute, "source", "reject_status 410\ntolerance 1s\nsource", 1), counting(new(atomic.Int64)))
	r := signedAt(t, "stripe", "evt_1", time.Now().Add(-time.Hour))
	if resp := g.do(r); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d", resp.StatusCode)
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "stale"); n != 1 {
		t.Errorf("%v counted as stale", n)
	}
}

func TestBodyOverCaddysOwnLimitIsTooLarge(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, "request_body {\nmax_size 10B\n}\n"+stripeRoute, counting(&calls))
	if resp := g.send("stripe", "evt_1"); resp.StatusCode != http.StatusRequestEntityTooLarge || calls.Load() != 0 {
		t.Errorf("got %d, %d calls", resp.StatusCode, calls.Load())
	}
}

func TestRetryAfterIsWrittenInWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{
		1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v: got %d", d, got)
		}
	}
}

func TestOnlyWhatIsTemporaryHasRetryAfter(t *testing.T) {
	g := newGateway(t, stripeRoute, counting(new(atomic.Int64)))
	r := signed(t, "stripe", "evt_1")
	r.Header.Del("Stripe-Signature")
	if got := g.do(r).Header.Get("Retry-After"); got != "" {
		t.Errorf("a forged request gets Retry-After %q", got)
	}
	g.store.away.Store(true)
	resp := g.send("stripe", "evt_1")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestOwnAnswersCarryNothingOfAnother(t *testing.T) {
	site := "header Etag outer\nheader Last-Modified outer\nheader Content-Encoding gzip\n" + stripeRoute
	g := newGateway(t, site, func(w http.ResponseWriter, _ *http.Request) error {
		for _, name := range []string{"Content-Type", "Etag", "Last-Modified", "Content-Encoding", "Location", "Set-Cookie"} {
			w.Header().Set(name, "x")
		}
		_, _ = io.WriteString(w, "half")
		return errors.New("broken")
	})
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 502, "first")
	for name := range resp.Header {
		switch name {
		case "Content-Length", "Retry-After", "Server", resultHeader:
		case "Content-Type":
			if resp.Header.Get(name) != "" {
				t.Errorf("%s: %q", name, resp.Header[name])
			}
		default:
			t.Errorf("%s: %q", name, resp.Header[name])
		}
	}
}
