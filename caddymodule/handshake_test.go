package caddymodule

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestHandshakePassesUntouched(t *testing.T) {
	site := strings.Replace(stripeRoute, "source", "handshake get\nsource", 1)
	g := newGateway(t, site, func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get(resultHeader) != "" {
			t.Error("a forged header came through")
		}
		_, err := io.WriteString(w, "challenge "+r.URL.RawQuery)
		return err
	})
	r, _ := http.NewRequest(http.MethodGet, "http://gateway.test/hook?c=1", nil)
	r.Header.Set(resultHeader, "first")
	resp := g.do(r)
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != "challenge c=1" {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
	if n := count(t, "deliveries_total", "source", g.source, "result", "handshake"); n != 1 || g.store.calls.Load() != 0 {
		t.Errorf("%v counted, %d calls of the store", n, g.store.calls.Load())
	}
	r, _ = http.NewRequest(http.MethodHead, "http://gateway.test/hook", nil)
	resp = g.do(r)
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST, GET" {
		t.Errorf("got %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}
