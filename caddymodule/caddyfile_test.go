package caddymodule

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// adaptRoute returns the handler's JSON for a webhook_dedupe directive.
func adaptRoute(t *testing.T, directive string) (string, error) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("http://x {\n"+directive+"\n}"), nil)
	if err != nil {
		return "", err
	}
	var config struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes []struct{ Handle []json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	for _, route := range config.Apps.HTTP.Servers["srv0"].Routes {
		for _, handler := range route.Handle {
			if bytes.Contains(handler, []byte(`"webhook_dedupe"`)) {
				return string(unwrap(t, handler)), nil
			}
		}
	}
	t.Fatalf("no handler in %s", adapted)
	return "", nil
}

// unwrap takes a handler out of the subroute of its site.
func unwrap(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var sub struct {
		Handler string
		Routes  []struct{ Handle []json.RawMessage }
	}
	if err := json.Unmarshal(raw, &sub); err != nil {
		t.Fatal(err)
	}
	if sub.Handler != "subroute" {
		return raw
	}
	return unwrap(t, sub.Routes[0].Handle[0])
}

const fullDirective = `webhook_dedupe {
	source            shop-orders
	secret            {env.ONE}
	secret            two
	previous_secret   old
	previous_secret   {env.OLDER} until 2026-12-01T00:00:00Z
	ttl               8d
	on_unknown        hold
	signature {
		header        X-Sig X-Sig-Old
		separator     ;
		label         v1 v2
		prefix        sha512=
		algorithm     sha512
		encoding      base64url
		payload       {method}{url}{timestamp}.{id}.{body}
		timestamp     field t unix_ms
	}
	oidc {
		audience      https://a https://b
		audience      https://c
		email         a@example.com b@example.com
		issuer        https://id.example.com
		jwks_url      https://id.example.com/certs
	}
	secret_format     hex
	event_id          header X-Id
	event_id          json data.id
	event_id          query id
	event_id          body_sha256
	tolerance         10m
	retry_window      24h
	on_reused_id      duplicate
	replay_guard      on
	public_url        https://shop.example.com
	signed_body       decoded
	lease             45s
	upstream_timeout  1m
	wait              0
	success           200 202 body_prefix "all well"
	max_response      2MiB
	max_in_flight     7
	duplicate         202 "already here" text/html
	reject_status     403
	on_store_error    forward
	methods           POST PUT
	handshake         get
	max_body          1KB
	log_field         type json type
	log_field         agent header User-Agent
	dry_run
}`

const fullJSON = `{
	"handler": "webhook_dedupe",
	"source": "shop-orders",
	"secret": ["{env.ONE}", "two"],
	"previous_secret": [{"value": "old"}, {"value": "{env.OLDER}", "until": "2026-12-01T00:00:00Z"}],
	"ttl": 691200000000000,
	"on_unknown": "hold",
	"signature": {
		"header": ["X-Sig", "X-Sig-Old"],
		"separator": ";",
		"label": ["v1", "v2"],
		"prefix": "sha512=",
		"algorithm": "sha512",
		"encoding": "base64url",
		"payload": "{http.request.method}{url}{timestamp}.{id}.{body}",
		"timestamp": {"field": "t", "unit": "unix_ms"}
	},
	"oidc": {
		"audience": ["https://a", "https://b", "https://c"],
		"email": ["a@example.com", "b@example.com"],
		"issuer": "https://id.example.com",
		"jwks_url": "https://id.example.com/certs"
	},
	"secret_format": "hex",
	"event_id": [
		{"kind": "header", "name": "X-Id"}, {"kind": "json", "name": "data.id"}, {"kind": "query", "name": "id"}, {"kind": "body_sha256"}
	],
	"tolerance": "10m",
	"retry_window": 86400000000000,
	"on_reused_id": "duplicate",
	"replay_guard": "on",
	"public_url": "https://shop.example.com",
	"signed_body": "decoded",
	"lease": 45000000000,
	"upstream_timeout": 60000000000,
	"wait": 0,
	"success": [200, 202],
	"success_body_prefix": "all well",
	"max_response": 2097152,
	"max_in_flight": 7,
	"duplicate": {"status": 202, "body": "already here", "content_type": "text/html"},
	"reject_status": 403,
	"on_store_error": "forward",
	"methods": ["POST", "PUT"],
	"handshake": "get",
	"max_body": 1000,
	"log_field": [
		{"name": "type", "kind": "json", "from": "type"}, {"name": "agent", "kind": "header", "from": "User-Agent"}
	],
	"dry_run": true
}`

func TestFullSyntaxBecomesJSON(t *testing.T) {
	got, err := adaptRoute(t, fullDirective)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := canonical(t, got), canonical(t, fullJSON); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJSONSurvivesTheRoundTrip(t *testing.T) {
	var h Handler
	if err := caddyconfigUnmarshal(fullJSON, &h); err != nil {
		t.Fatal(err)
	}
	again := caddyconfig.JSONModuleObject(h, "handler", "webhook_dedupe", nil)
	if got, want := canonical(t, string(again)), canonical(t, fullJSON); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEverySubdirectiveIsInTheFullSyntax(t *testing.T) {
	for name := range subdirectives {
		if !strings.Contains(fullDirective, "\n\t"+name+" ") && !strings.Contains(fullDirective, "\n\t"+name+"\n") {
			t.Errorf("%s is not tested", name)
		}
	}
}

func TestShortFormsBecomeJSON(t *testing.T) {
	for directive, want := range map[string]string{
		"webhook_dedupe stripe":                                           `{"sender":"stripe"}`,
		"webhook_dedupe /hooks/* stripe":                                  `{"sender":"stripe"}`,
		"webhook_dedupe":                                                  `{}`,
		"webhook_dedupe svix {\nsecret x\n}":                              `{"sender":"svix","secret":["x"]}`,
		"webhook_dedupe {\nwait 3s\n}":                                    `{"wait":3000000000}`,
		"webhook_dedupe {\nduplicate 204\n}":                              `{"duplicate":{"status":204}}`,
		"webhook_dedupe {\nduplicate 200 hi\n}":                           `{"duplicate":{"status":200,"body":"hi"}}`,
		"webhook_dedupe {\ntolerance off\n}":                              `{"tolerance":"off"}`,
		"webhook_dedupe {\nsignature {\ntimestamp header T\n}\n}":         `{"signature":{"timestamp":{"header":"T"}}}`,
		"webhook_dedupe {\nsignature {\ntimestamp json a.t unix_ms\n}\n}": `{"signature":{"timestamp":{"json":"a.t","unit":"unix_ms"}}}`,
	} {
		got, err := adaptRoute(t, directive)
		if err != nil {
			t.Errorf("%s: %v", directive, err)
			continue
		}
		want = strings.Replace(want, "{", `{"handler":"webhook_dedupe",`, 1)
		want = strings.Replace(want, ",}", "}", 1)
		if canonical(t, got) != canonical(t, want) {
			t.Errorf("%s: got %s", directive, got)
		}
	}
}

func TestMistakesInADirectiveAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"nonsense 1":                    "unrecognized subdirective 'nonsense'",
		"source":                        "wrong argument count",
		"source a b":                    "wrong argument count",
		"source a\nsource b":            "source is given twice",
		"secret":                        "wrong argument count",
		"secret a b":                    "wrong argument count",
		"previous_secret":               "wrong argument count",
		"previous_secret a until":       "wrong argument count",
		"previous_secret a since x":     "wrong argument count",
		"previous_secret a until b c":   "wrong argument count",
		"ttl":                           "wrong argument count",
		"ttl soon":                      "ttl 'soon' is not a duration",
		"ttl -1s":                       "not a duration",
		"lease 1":                       "not a duration",
		"wait x":                        "not a duration",
		"wait 1s\nwait 2s":              "wait is given twice",
		"upstream_timeout 1s 2s":        "wrong argument count",
		"retry_window x":                "not a duration",
		"on_unknown":                    "wrong argument count",
		"signature x":                   "wrong argument count",
		"signature {\nnonsense\n}":      "unrecognized signature subdirective 'nonsense'",
		"signature {\nheader\n}":        "wrong argument count",
		"signature {\nlabel\n}":         "wrong argument count",
		"signature {\nprefix a b\n}":    "wrong argument count",
		"signature {\nalgorithm\n}":     "wrong argument count",
		"signature {\nencoding\n}":      "wrong argument count",
		"signature {\npayload a b\n}":   "wrong argument count",
		"signature {\nseparator\n}":     "wrong argument count",
		"signature {\ntimestamp t\n}":   "timestamp wants",
		"signature {\ntimestamp x t\n}": "neither field nor header nor json",
		"signature {\ntimestamp field t unix_s x\n}": "timestamp wants",
		"event_id":                "event_id wants",
		"event_id header":         "event_id wants",
		"event_id cookie x":       "event_id wants",
		"event_id body_sha256 x":  "event_id wants",
		"event_id header a b":     "event_id wants",
		"success":                 "wrong argument count",
		"success 200 body_prefix": "body_prefix wants a text",
		`success body_prefix ""`:  "body_prefix is empty",
		"success 2xx":             "success 2xx is not a status",
		"max_response":            "wrong argument count",
		"max_response much":       "not a size",
		"max_response 0":          "not a size",
		"max_body 99999TB":        "not a size",
		"max_in_flight few":       "not a number",
		"max_in_flight -1":        "not a number",
		"duplicate":               "wrong argument count",
		"duplicate ok":            "not a status",
		"duplicate 200 a b c":     "wrong argument count",
		"reject_status no":        "not a number",
		"methods":                 "wrong argument count",
		"handshake":               "wrong argument count",
		"log_field a json":        "wrong argument count",
		"log_field a json b c":    "wrong argument count",
		"dry_run yes":             "wrong argument count",
		"public_url":              "wrong argument count",
		"secret_format":           "wrong argument count",
		"replay_guard":            "wrong argument count",
		"on_reused_id":            "wrong argument count",
		"on_store_error":          "wrong argument count",
		"tolerance":               "wrong argument count",
	} {
		_, err := adaptRoute(t, "webhook_dedupe {\n"+line+"\n}")
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestMistakesInTheFirstLineAreRefused(t *testing.T) {
	_, err := adaptRoute(t, "webhook_dedupe stirpe")
	if err == nil || !strings.Contains(err.Error(), `unknown sender "stirpe"`) || !strings.Contains(err.Error(), "stripe, svix") {
		t.Errorf("got %v", err)
	}
	if _, err := adaptRoute(t, "webhook_dedupe stripe svix"); err == nil {
		t.Error("two senders are accepted")
	}
}

func TestRouteIsOrderedOutsideOfWhatAnswers(t *testing.T) {
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(`http://x {
		reverse_proxy localhost:1
		encode gzip
		handle /a {
			respond a
		}
		webhook_dedupe stripe
		basic_auth {
			u $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
		}
		request_body {
			max_size 1MB
		}
	}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, handler := range []string{`"request_body"`, `"authentication"`, `"webhook_dedupe"`, `"encode"`, `"static_response"`, `"reverse_proxy"`} {
		i := strings.Index(string(adapted), `"handler":`+handler)
		if i <= last {
			t.Errorf("%s is at %d, after %d", handler, i, last)
		}
		last = i
	}
}

// canonical is JSON with its members in order.
func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// caddyconfigUnmarshal reads a module as Caddy does: strictly.
func caddyconfigUnmarshal(text string, into any) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return err
	}
	delete(fields, "handler")
	bare, _ := json.Marshal(fields)
	d := json.NewDecoder(bytes.NewReader(bare))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func FuzzDirectiveNeverPanics(f *testing.F) {
	f.Add(fullDirective)
	f.Add("webhook_dedupe stripe {\nsignature {\ntimestamp field\n}\nduplicate\n}")
	f.Add("webhook_dedupe {\nsource\n{\n}")
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := caddyfile.Tokenize([]byte(text), "Caddyfile")
		if err != nil || len(tokens) == 0 {
			return
		}
		h := new(Handler)
		if err := h.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err == nil {
			if _, err := json.Marshal(h); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzStoreOptionNeverPanics(f *testing.F) {
	f.Add("webhook_dedupe {\nstore redis {\naddress a b\ntls {\nca x\n}\n}\n}")
	f.Add("webhook_dedupe {\nstore file x {\nsync\n}\n}")
	f.Fuzz(func(_ *testing.T, text string) {
		tokens, err := caddyfile.Tokenize([]byte(text), "Caddyfile")
		if err != nil || len(tokens) == 0 {
			return
		}
		_, _ = parseGlobalOption(caddyfile.NewDispenser(tokens), nil)
	})
}
