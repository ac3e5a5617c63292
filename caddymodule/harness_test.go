package caddymodule

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard" // the directives that routes use

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// patience bounds what a test waits for; only a failing test waits that long.
const patience = 20 * time.Second

// secret is what deliveries are signed with. It must never be seen anywhere.
const secret = "whsec_c2VjcmV0LW9mLXRoZS10ZXN0cy0x"

// gateway is Caddy's HTTP server with a configuration of the test's, called
// without a listener.
type gateway struct {
	http.Handler
	t      *testing.T
	app    *App
	store  *fakeStore
	logs   *logBook
	source string
}

// serial makes the sources and stores of tests their own, so that counters and
// records of one test never show in another.
var serial atomic.Int64

// newGateway runs a Caddyfile site. In its text $SOURCE is a source of the
// test's own, $SECRET the secret, and `upstream` the directive that calls up.
func newGateway(t *testing.T, site string, up caddyhttp.HandlerFunc) *gateway {
	t.Helper()
	return newGatewayOn(t, newFakeStore(), site, up)
}

// newGatewayOn is newGateway with a store that may have served another one.
func newGatewayOn(t *testing.T, store *fakeStore, site string, up caddyhttp.HandlerFunc) *gateway {
	t.Helper()
	g := &gateway{t: t, store: store, logs: newLogBook(), source: store.name}
	upstreams.Store(store.name, up)
	config := fmt.Sprintf(`{
		admin off
		auto_https off
		webhook_dedupe {
			store test %s
		}
	}
	http://gateway.test {
		log
		%s
	}`, store.name, strings.NewReplacer("$SOURCE", g.source, "$SECRET", secret, "upstream\n", "test_upstream "+store.name+"\n").Replace(site))
	ctx, err := provision(t, config, g.logs)
	if err != nil {
		t.Fatal(err)
	}
	httpApp, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	g.Handler = httpApp.(*caddyhttp.App).Servers["srv0"]
	app, err := ctx.App(appName)
	if err != nil {
		t.Fatal(err)
	}
	g.app = app.(*App)
	if err := g.app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		store.heal()
		_ = g.app.Cleanup()
	})
	return g
}

// provision adapts a Caddyfile and provisions it, as `caddy validate` does.
func provision(t testing.TB, config string, logs *logBook) (caddy.Context, error) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), nil)
	if err != nil {
		return caddy.Context{}, err
	}
	return provisionJSON(t, adapted, logs)
}

func provisionJSON(t testing.TB, adapted []byte, logs *logBook) (caddy.Context, error) {
	t.Helper()
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		t.Fatal(err)
	}
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{
		WriterRaw: json.RawMessage(`{"output":"discard"}`),
		CoreRaw:   logs.config(),
	}}}}
	return caddy.ProvisionContext(&c)
}

// callDirectly has the upstream called as if it were known to end in time, as a
// proxy is; see punctual.go.
func (g *gateway) callDirectly() {
	for _, h := range hooksOf(g.Handler) {
		h.punctual.Store(true)
	}
}

// do serves a request and returns the answer.
func (g *gateway) do(r *http.Request) *http.Response {
	g.t.Helper()
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

// send delivers an event as the sender of that name would, and returns the
// answer.
func (g *gateway) send(sender, id string, body ...string) *http.Response {
	g.t.Helper()
	return g.do(signed(g.t, sender, id, body...))
}

// signed is a signed delivery to the gateway.
func signed(t testing.TB, sender, id string, body ...string) *http.Request {
	t.Helper()
	return signedAt(t, sender, id, time.Now(), body...)
}

// signedAt is a delivery that was signed at that time.
func signedAt(t testing.TB, sender, id string, now time.Time, body ...string) *http.Request {
	t.Helper()
	content := verify.SampleBody(sender, id)
	if len(body) > 0 {
		content = []byte(body[0])
	}
	v, err := verify.New(verify.Config{Sender: sender, Secrets: []verify.Secret{{Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	header, err := v.Sign(verify.SignInput{Body: content, ID: id, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://gateway.test/hook", bytes.NewReader(content))
	r.Header = header
	return r
}

// expect checks the status and the result of an answer.
func expect(t *testing.T, resp *http.Response, status int, result string) {
	t.Helper()
	if got := resp.Header.Get(resultHeader); resp.StatusCode != status || got != result {
		t.Errorf("got status %d and result %q; want %d and %q", resp.StatusCode, got, status, result)
	}
}

// count returns the value of a metric for labels that are given as name, value,
// name, value; 0 if there is none.
func count(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	registry := caddyRegistry(t)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() != "caddy_webhook_dedupe_"+name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			has := make(map[string]string)
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if has[labels[i]] != labels[i+1] {
					continue series
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// receive waits for a value.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

// upstreams are the functions behind the directive test_upstream, by name.
var upstreams sync.Map

// testUpstream stands for the rest of Caddy's chain.
type testUpstream struct {
	Name string `json:"name"`
}

func (testUpstream) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_upstream", New: func() caddy.Module { return new(testUpstream) }}
}

func (u testUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	up, _ := upstreams.Load(u.Name)
	return up.(caddyhttp.HandlerFunc)(w, r)
}

func (u *testUpstream) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.NextArg()
	u.Name = d.Val()
	return nil
}

func init() {
	caddy.RegisterModule(testUpstream{})
	httpcaddyfile.RegisterHandlerDirective("test_upstream", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		u := new(testUpstream)
		return u, u.UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder("test_upstream", httpcaddyfile.Before, "respond")
}

// counting returns an upstream that answers 200 and counts.
func counting(calls *atomic.Int64) caddyhttp.HandlerFunc {
	return answering(calls, http.StatusOK, "")
}

// answering returns an upstream that counts and gives one answer.
func answering(calls *atomic.Int64, status int, body string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		calls.Add(1)
		w.WriteHeader(status)
		_, err := w.Write([]byte(body))
		return err
	}
}

// hmacHex is the signature of a custom scheme.
func hmacHex(payload string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(payload))
	return hex.EncodeToString(mac.Sum(nil))
}

// longAgo is out of every tolerance.
var longAgo = time.Unix(1_500_000_000, 0)

// discard is a sender that reads nothing.
type discard struct{}

func (discard) Header() http.Header         { return make(http.Header) }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
