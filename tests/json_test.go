package tests

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// everyOption is a route with each option that a route may have.
var everyOption = []string{
	"source shop-orders", "secret {env.SECRET}", "secret another", "previous_secret {env.SECRET} until 2999-12-01T00:00:00Z",
	"ttl 20d", "on_unknown hold", "secret_format text", "event_id header X-Id", "event_id json data.id", "event_id query q", "event_id body_sha256",
	"tolerance 10m", "retry_window 17h", "on_reused_id duplicate", "replay_guard off", "public_url https://example.com/hook", "signed_body decoded",
	"lease 40s", "upstream_timeout 50s", "wait 2s", "success 200 202 body_prefix ok", "max_response 2MiB", "max_in_flight 9",
	`duplicate 202 "[accepted]" text/x-odd`, "reject_status 403", "on_store_error forward", "methods POST PUT", "handshake get",
	"max_body 3MiB", "log_field invoice json data.invoice", "log_field agent header User-Agent", "dry_run",
	signature("header X-Sig X-Sig2", "separator ;", "label v1 v2", "prefix sha256=", "algorithm sha512", "encoding base64",
		"payload {method}|{url}|{timestamp}|{body}", "timestamp header X-Time rfc3339"),
}

// everyField are the names of the same in JSON.
var everyField = []string{
	"source", "secret", "previous_secret", "until", "ttl", "on_unknown", "secret_format", "event_id", "tolerance", "retry_window",
	"on_reused_id", "replay_guard", "public_url", "signed_body", "lease", "upstream_timeout", "wait", "success", "success_body_prefix", "max_response", "max_in_flight",
	"duplicate", "content_type", "reject_status", "on_store_error", "methods", "handshake", "max_body", "log_field", "dry_run",
	"signature", "separator", "prefix", "algorithm", "encoding", "payload", "timestamp",
}

var redisOptions = "redis {\naddress 127.0.0.1:1 127.0.0.1:2\nusername gateway\npassword {env.SECRET}\nsentinel main\ntls {\nserver_name redis\n}\nkey_prefix other\ntimeout 3s\n}"

func TestEveryOptionIsInTheJSONAndLoadsTheSame(t *testing.T) {
	t.Parallel()
	g := harness.NewGateway(t, harness.WithGlobal("webhook_dedupe {", "store "+redisOptions, "max_buffered 99MiB", "}"), harness.WithEnv("SECRET=not-to-be-seen"))
	file := g.Write("Caddyfile", g.Caddyfile(route("/pay", "", everyOption...)))
	adapted, ok := g.Run("adapt", "--config", file, "--adapter", "caddyfile")
	if !ok {
		t.Fatalf("it is refused:\n%s", adapted)
	}
	adapted = lastJSON(t, adapted)
	for _, field := range append(everyField, "address", "username", "password", "sentinel", "tls", "server_name", "key_prefix", "timeout", "max_buffered") {
		if !strings.Contains(adapted, `"`+field+`":`) {
			t.Errorf("the JSON has no %s: %s", field, adapted)
		}
	}
	g.Start("")
	fromCaddyfile := g.Admin("/config/")
	g.Reload("respond nothing")
	if refusal := g.Load("application/json", fromCaddyfile); refusal != "" {
		t.Fatalf("the JSON is refused: %s", refusal)
	}
	assertSameJSON(t, g.Admin("/config/"), adapted)
	if strings.Contains(g.Admin("/config/"), "not-to-be-seen") {
		t.Error("a resolved secret is in the configuration that Caddy shows")
	}
}

func TestJSONConfigurationWorksLikeTheCaddyfile(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u), harness.WithStore("file {\nsync always\n}"))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	config := g.Admin("/config/")
	g.Reload("respond nothing")
	if refusal := g.Load("application/json", config); refusal != "" {
		t.Fatalf("the JSON is refused: %s", refusal)
	}
	g.Expect(t, d, "200 duplicate")
	unsafe := strings.Replace(config, harness.Secret, "{env.SURELY_NOT_SET}", 1)
	if refusal := g.Load("application/json", unsafe); !strings.Contains(refusal, "it is empty") {
		t.Errorf("an unsafe route in JSON is answered with %q", refusal)
	}
	misspelt := strings.Replace(config, `"wait":`, `"weight":`, 1)
	if misspelt == config || g.Load("application/json", misspelt) == "" {
		t.Error("an unknown field in JSON is accepted")
	}
	g.Expect(t, d, "200 duplicate")
	assertReached(t, u, d.Event, "first")
}

// lastJSON is the line of the output that is the configuration.
func lastJSON(t *testing.T, output string) string {
	t.Helper()
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, `{"admin"`) || strings.HasPrefix(line, `{"apps"`) {
			return line
		}
	}
	t.Fatalf("no configuration in %s", output)
	return ""
}

func assertSameJSON(t *testing.T, a, b string) {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(x, y) {
		t.Errorf("the configurations differ:\n%s\n%s", a, b)
	}
}
