package caddymodule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// adaptOption returns the app's JSON for a global option.
func adaptOption(t *testing.T, option string) (string, error) {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("{\n"+option+"\n}\nhttp://x {\nrespond hi\n}"), nil)
	if err != nil {
		return "", err
	}
	var config struct{ Apps map[string]json.RawMessage }
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	return string(config.Apps[appName]), nil
}

func TestStoresBecomeJSON(t *testing.T) {
	for option, want := range map[string]string{
		"store memory":                                            `{"type":"memory"}`,
		"store memory {\n}":                                       `{"type":"memory"}`,
		"store file":                                              `{"type":"file"}`,
		"store file /data/events":                                 `{"type":"file","directory":"/data/events"}`,
		"store file {\nsync always\n}":                            `{"type":"file","sync":"always"}`,
		"store file x {\nsync everysec\n}":                        `{"type":"file","directory":"x","sync":"everysec"}`,
		"store redis {\naddress a:1\n}":                           `{"type":"redis","address":["a:1"]}`,
		"store redis {\nurl redis://a/1\n}":                       `{"type":"redis","url":"redis://a/1"}`,
		"store redis {\naddress a:1 b:1\naddress c:1\ncluster\n}": `{"type":"redis","address":["a:1","b:1","c:1"],"cluster":true}`,
		`store redis {
			address       a:1 b:1
			username      gateway
			password      {env.REDIS_PASSWORD}
			db            3
			sentinel      main
			tls {
				ca           ca.pem
				certificate  c.pem
				key          k.pem
				server_name  redis
			}
			key_prefix    shop
			timeout       2s
		}`: `{"type":"redis","address":["a:1","b:1"],"username":"gateway","password":"{env.REDIS_PASSWORD}","db":3,"sentinel":"main",
			"tls":{"ca":"ca.pem","certificate":"c.pem","key":"k.pem","server_name":"redis"},"key_prefix":"shop","timeout":2000000000}`,
		"store redis {\naddress a:1\ntls\n}": `{"type":"redis","address":["a:1"],"tls":{}}`,
	} {
		got, err := adaptOption(t, "webhook_dedupe {\n"+option+"\n}")
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		if want = canonical(t, `{"store":`+want+`}`); canonical(t, got) != want {
			t.Errorf("%s: got %s", option, got)
		}
	}
	if got, err := adaptOption(t, "webhook_dedupe"); err != nil || got != "{}" {
		t.Errorf("an empty option is %s, %v", got, err)
	}
}

func TestMistakesInAStoreAreRefused(t *testing.T) {
	for option, want := range map[string]string{
		"nonsense":                             "unrecognized webhook_dedupe option 'nonsense'",
		"store":                                "wrong argument count",
		"store bolt":                           "bolt",
		"store memory\nstore file":             "one configuration has one store",
		"store memory x":                       "wrong argument count",
		"store memory {\nx\n}":                 "wrong argument count",
		"store file a b":                       "wrong argument count",
		"store file {\nfsync always\n}":        "unrecognized file store option 'fsync'",
		"store file {\nsync\n}":                "wrong argument count",
		"store redis a:1":                      "wrong argument count",
		"store redis {\naddress\n}":            "wrong argument count",
		"store redis {\nhost a\n}":             "unrecognized redis store option 'host'",
		"store redis {\ndb one\n}":             "not a number",
		"store redis {\ncluster yes\n}":        "wrong argument count",
		"store redis {\nsentinel\n}":           "wrong argument count",
		"store redis {\ntimeout x\n}":          "not a duration",
		"store redis {\ntls on\n}":             "wrong argument count",
		"store redis {\ntls {\ninsecure\n}\n}": "unrecognized tls option 'insecure'",
		"store redis {\ntls {\nca\n}\n}":       "wrong argument count",
		"store redis {\npassword a b\n}":       "wrong argument count",
	} {
		_, err := adaptOption(t, "webhook_dedupe {\n"+option+"\n}")
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("%q: %v", option, err)
		}
	}
	for _, option := range []string{"webhook_dedupe x", "webhook_dedupe {\nstore memory\n}\nwebhook_dedupe {\n}"} {
		if _, err := adaptOption(t, option); err == nil {
			t.Errorf("%q is accepted", option)
		}
	}
}
