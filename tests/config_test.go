package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// validate asks `caddy validate` about a site.
func validate(t *testing.T, g *harness.Gateway, name, site string) (output string, ok bool) {
	t.Helper()
	file := g.Write(name, g.Caddyfile(site))
	return g.Run("validate", "--config", file, "--adapter", "caddyfile")
}

// signature is a block for a scheme of one's own.
func signature(lines ...string) string {
	return "signature {\n" + strings.Join(lines, "\n") + "\n}"
}

// unsafeRoutes are routes that must not be loaded, and what the refusal says.
var unsafeRoutes = map[string]struct {
	sender string
	lines  []string
	reason string
}{
	"unset variable":         {"paymos", []string{"secret {env.SURELY_NOT_SET}"}, "secret 1: it is empty"},
	"empty variable":         {"paymos", []string{"secret {env.EMPTY}"}, "secret 1: it is empty"},
	"blank variable":         {"paymos", []string{"secret {env.BLANK}"}, "secret 1: it is empty"},
	"empty secret":           {"paymos", []string{`secret ""`}, "secret 1: it is empty"},
	"missing file":           {"paymos", []string{"secret {file./surely/not/there}"}, "secret 1: it is empty"},
	"one of two is empty":    {"paymos", []string{"secret good", "secret {env.EMPTY}"}, "secret 2: it is empty"},
	"half a secret":          {"paymos", []string{"secret prefix-{env.SURELY_NOT_SET}"}, "a placeholder in it is empty"},
	"unknown placeholder":    {"paymos", []string{"secret {http.request.host}"}, "placeholder that is not known"},
	"only a previous secret": {"paymos", []string{"secret {env.EMPTY}", "previous_secret old"}, "it is empty"},
	"secret no base64":       {"svix", []string{"secret whsec_%%%"}, "secret 1"},
	"until is no time":       {"paymos", []string{"previous_secret old until tomorrow"}, "RFC 3339"},
	"short ttl":              {"paymos", []string{"ttl 16h"}, "is not longer than retry_window plus tolerance"},
	"ttl as long as needed":  {"paymos", []string{"ttl 1h5m", "retry_window 1h"}, "is not longer than retry_window plus tolerance"},
	"short lease":            {"paymos", []string{"lease 999ms"}, "lease is shorter than 1s"},
	"success that is none":   {"paymos", []string{"success 200 302"}, "success 302"},
	"duplicate as an error":  {"paymos", []string{"duplicate 409"}, "duplicate 409"},
	"reject as success":      {"paymos", []string{"reject_status 200"}, "reject_status 200"},
	"guard without a time":   {"github", []string{"replay_guard on"}, "replay_guard needs a timestamp"},
	"tolerance without one":  {"github", []string{"tolerance 5m"}, "covers no timestamp"},
	"tolerance of nothing":   {"paymos", []string{"tolerance 0s"}, "tolerance"},
	"odd on_unknown":         {"paymos", []string{"on_unknown guess"}, "on_unknown"},
	"odd on_store_error":     {"paymos", []string{"on_store_error ignore"}, "on_store_error"},
	"odd on_reused_id":       {"paymos", []string{"on_reused_id refuse"}, "on_reused_id"},
	"unknown handshake":      {"paymos", []string{"handshake wave"}, "unknown handshake"},
	"unsigned deliveries":    {"paymos", []string{"handshake get", "methods GET"}, "must be signed"},
	"odd source":             {"paymos", []string{`source "a:b"`}, "the source may hold only"},
	"sender and signature":   {"paymos", []string{signature("header X-Sig")}, "exclude each other"},
	"neither of them":        {"", []string{"event_id header X-Id"}, "neither a sender nor a signature"},
	"payload without a body": {"", []string{"event_id header X-Id", signature("header X-Sig", "payload {id}")}, "body"},
	"url unknown":            {"", []string{"event_id header X-Id", signature("header X-Sig", "payload {url}{body}")}, "public_url"},
	"no event id":            {"", []string{signature("header X-Sig")}, "event_id"},
	"no header":              {"", []string{"event_id header X-Id", signature("prefix x")}, "header"},
	"id header is dropped":   {"github", []string{"event_id header X_Id"}, "X_Id"},
	"signature is dropped":   {"", []string{"event_id header X-Id", signature("header X.Sig")}, "X.Sig"},
	"time header is dropped": {"", []string{"event_id header X-Id", signature("header X-Sig", "payload {timestamp}{body}", "timestamp header X_Time")}, "X_Time"},
	"odd log field":          {"paymos", []string{"log_field name query id"}, "log_field"},
}

func TestUnsafeRouteIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	g := harness.NewGateway(t, harness.WithEnv("BLANK= \t ", "EMPTY="))
	for name, c := range unsafeRoutes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := validate(t, g, strings.ReplaceAll(name, " ", "-"), route("/pay", c.sender, c.lines...))
			if ok {
				t.Fatal("it is accepted")
			}
			source := `webhook_dedupe route "pay"`
			if name == "odd source" {
				source = `webhook_dedupe route "a:b"`
			}
			if plain := strings.ReplaceAll(out, `\"`, `"`); !strings.Contains(plain, source) || !strings.Contains(plain, c.reason) {
				t.Errorf("the refusal names not both %q and %q:\n%s", source, c.reason, out)
			}
		})
	}
}

func TestMistypedCaddyfileIsRefusedWithTheLine(t *testing.T) {
	t.Parallel()
	g := harness.NewGateway(t)
	for i, c := range []struct{ site, reason string }{
		{route("/pay", "palmos"), `unknown sender \"palmos\"`},
		{route("/pay", "paymos", "leese 5s"), "unrecognized subdirective 'leese'"},
		{route("/pay", "paymos", "lease 5s", "lease 6s"), "lease is given twice"},
		{route("/pay", "paymos", "lease soon"), "lease 'soon' is not a duration"},
		{route("/pay", "paymos", "max_body huge"), "max_body 'huge' is not a size"},
		{route("/pay", "paymos", "max_in_flight many"), "is not a number"},
		{route("/pay", "paymos", "success ok"), "success ok is not a status"},
		{route("/pay", "paymos", "event_id xpath a"), "event_id wants"},
		{route("/pay", "paymos", "dry_run yes"), "wrong argument count"},
		{route("/pay", "", signature("headre X")), "unrecognized signature subdirective 'headre'"},
		{route("/pay", "", signature("header X", "timestamp body t")), "neither field nor header"},
	} {
		out, ok := validate(t, g, fmt.Sprint("Caddyfile-", i), c.site)
		if ok || !strings.Contains(out, c.reason) || !strings.Contains(out, fmt.Sprint("Caddyfile-", i, ":")) {
			t.Errorf("accepted %v, and the refusal does not give %q and the line:\n%s", ok, c.reason, out)
		}
	}
}

func TestUnsafeSetOfRoutesIsRefused(t *testing.T) {
	t.Parallel()
	nameless := func(path string) string {
		return "webhook_dedupe " + path + "* paymos {\nsecret x\n}\n"
	}
	other := route("/b", "paymos", "source shared", "secret other")
	for name, c := range map[string]struct {
		site, reason string
	}{
		"one source by default":    {nameless("/a") + nameless("/b"), "has the same source"},
		"written in one only":      {nameless("/a") + route("/b", "paymos", "source paymos", "secret x"), "has the same source"},
		"with other secrets":       {route("/a", "paymos", "source shared") + other, "another route has the same source"},
		"with another sender":      {route("/a", "stripe", "source shared") + route("/b", "paymos", "source shared"), "another route has the same source"},
		"with another reuse":       {route("/a", "paymos", "source shared") + route("/b", "paymos", "source shared", "on_reused_id forward"), "another route has the same source"},
		"no source, shared store":  {"redis " + nameless("/a"), "write out a `source`"},
		"two routes, shared store": {"redis " + nameless("/a") + nameless("/b"), "write out a `source`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := harness.NewGateway(t)
			site, shared := strings.CutPrefix(c.site, "redis ")
			if shared {
				g.Configure(harness.WithRedis("127.0.0.1:1"))
			}
			out, ok := validate(t, g, "Caddyfile", site)
			if ok || !strings.Contains(out, c.reason) {
				t.Errorf("accepted %v, and the refusal does not say %q:\n%s", ok, c.reason, out)
			}
		})
	}
	g := harness.NewGateway(t)
	if out, ok := validate(t, g, "good", route("/a", "paymos", "source shared")+route("/b", "paymos", "source shared")); !ok {
		t.Errorf("two routes that share a source on purpose are refused:\n%s", out)
	}
}

func TestWarningsAboutRiskyConfigurations(t *testing.T) {
	t.Parallel()
	g := harness.NewGateway(t, harness.WithStore("memory"))
	out, ok := validate(t, g, "Caddyfile", route("/pay", "paymos", "retry_window 1m", "lease 1m", "upstream_timeout 1m"))
	for _, warning := range []string{"the memory store forgets", "upstream_timeout plus lease is longer"} {
		if !ok || !strings.Contains(out, warning) {
			t.Errorf("accepted %v, without the warning %q:\n%s", ok, warning, out)
		}
	}
}
