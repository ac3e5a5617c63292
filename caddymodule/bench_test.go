package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// BenchmarkDelivery is a delivery of 1 KiB on its way through Caddy's server,
// without a connection and with an upstream that answers at once: the site
// alone, and with the gateway in front of it. What the gateway allocates is the
// difference.
func BenchmarkDelivery(b *testing.B) {
	b.Run("site alone", func(b *testing.B) { benchmarkDelivery(b, "", "", true) })
	for _, store := range []string{"memory", "file", "redis"} {
		for _, what := range []string{"first-seen", "duplicate"} {
			b.Run(store+"/"+what, func(b *testing.B) {
				line := store
				switch store {
				case "file":
					line += " " + b.TempDir()
				case "redis":
					line += " {\naddress " + harness.StartRedis(b).Addr + "\n}"
				}
				benchmarkDelivery(b, line, "webhook_dedupe github {\nsource bench\nsecret "+secret+"\n}", what == "first-seen")
			})
		}
	}
}

func benchmarkDelivery(b *testing.B, store, directive string, everyEventIsNew bool) {
	server := benchmarkServer(b, store, directive)
	body := strings.Repeat("x", 1024)
	template := signed(b, "github", "evt_0", body)
	event := func(n uint64) {
		r := template.Clone(b.Context())
		r.Body = io.NopCloser(strings.NewReader(body))
		r.Header.Set("X-GitHub-Delivery", "evt_"+strconv.FormatUint(n, 10))
		w := httptest.NewRecorder()
		if server.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatalf("status %d", w.Code)
		}
	}
	event(0)
	last := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		if everyEventIsNew {
			last++
			event(last)
		} else {
			event(0)
		}
	}
}

// benchmarkServer is Caddy's server with one site.
func benchmarkServer(b *testing.B, store, directive string) http.Handler {
	name := fmt.Sprintf("bench%d", serial.Add(1))
	upstreams.Store(name, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(`{"ok":true}`))
		return err
	}))
	global := ""
	if store != "" {
		global = "webhook_dedupe {\nstore " + store + "\n}\n"
	}
	config := "{\nadmin off\nauto_https off\n" + global + "}\nhttp://gateway.test {\nroute {\n" + directive + "\ntest_upstream " + name + "\n}\n}"
	ctx, err := provision(b, config, newLogBook())
	if err != nil {
		b.Fatal(err)
	}
	if store != "" {
		app, err := ctx.App(appName)
		if err != nil {
			b.Fatal(err)
		}
		if err := app.(*App).Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = app.(*App).Cleanup() })
	}
	httpApp, err := ctx.App("http")
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range hooksOf(httpApp) {
		h.punctual.Store(true) // as in front of a proxy
	}
	return httpApp.(*caddyhttp.App).Servers["srv0"]
}
