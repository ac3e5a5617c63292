package caddymodule

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

var savedAt = time.Unix(1767225600, 0)

// saved writes a delivery of paymos to a file, as a dump, and returns its name.
func saved(t *testing.T, key, body string) string {
	t.Helper()
	v, err := verify.New(verify.Config{Sender: "paymos", Secrets: []verify.Secret{{Value: key}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Sign(verify.SignInput{Body: []byte(body), Now: savedAt})
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	fmt.Fprint(&dump, "POST /webhooks/paymos HTTP/1.1\r\n")
	_ = h.Write(&dump)
	fmt.Fprintf(&dump, "\r\n%s", body)
	return file(t, "delivery.txt", dump.String())
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// explained runs the command.
func explained(t *testing.T, x explaining) (text string, ok bool) {
	t.Helper()
	var out bytes.Buffer
	code, err := x.run(&out)
	if (code == 0) != (err == nil) {
		t.Fatalf("exit status %d with %v", code, err)
	}
	text = out.String()
	if err != nil {
		text += err.Error()
	}
	if strings.Contains(text, secret) {
		t.Errorf("the secret is told: %s", text)
	}
	return text, err == nil
}

func says(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q but:\n%s", want, text)
		}
	}
}

const savedBody = `{"event_id":"evt_9","event_type":"invoice.paid"}`

func TestExplainIdentifiesAGenuineDelivery(t *testing.T) {
	x := explaining{request: saved(t, secret, savedBody), sender: "paymos", secrets: []string{"other", "@" + file(t, "secret", secret+"\n")}}
	text, ok := explained(t, x)
	if !ok {
		t.Error("it is refused")
	}
	says(t, text, "The signature matches.", "secret: number 2", "event id: evt_9", "signed at: 2026-01-01T00:00:00Z", "not judged without --at")
}

func TestExplainJudgesTheAgeIfAsked(t *testing.T) {
	x := explaining{request: saved(t, secret, savedBody), sender: "paymos", secrets: []string{secret}, at: "2026-01-01T00:05:00Z"}
	if text, ok := explained(t, x); !ok {
		t.Error(text)
	}
	x.at = fmt.Sprint(savedAt.Unix() + 301)
	text, ok := explained(t, x)
	if ok {
		t.Error("it is accepted")
	}
	says(t, text, "stale", "5m1s old")
	x.at = "noon"
	text, _ = explained(t, x)
	says(t, text, `--at "noon"`)
}

func TestExplainNamesTheChangeThatHelps(t *testing.T) {
	dump := saved(t, secret, savedBody)
	for want, x := range map[string]explaining{
		"(body-line-end)": {request: file(t, "dump", readFile(t, dump)+"\n"), sender: "paymos", secrets: []string{secret}},
		"(sender)":        {request: dump, sender: "github", secrets: []string{secret}},
		"None of ":        {request: dump, sender: "paymos", secrets: []string{"another"}},
		"white space":     {request: dump, sender: "paymos", secrets: []string{secret + " "}},
		"no secret":       {request: dump, sender: "paymos"},
	} {
		text, ok := explained(t, x)
		if ok {
			t.Errorf("%s: it is accepted", want)
		}
		says(t, text, want)
	}
}

func TestExplainJudgesSendersWithoutAnEventID(t *testing.T) {
	for _, name := range verify.Senders() {
		if s, _ := verify.SenderNamed(name); s.NoEventID == "" {
			continue
		}
		v, err := verify.New(verify.Config{Sender: name, EventID: []verify.IDSource{{Kind: verify.NoID}}, Secrets: []verify.Secret{{Value: verify.SampleSecret(name)}}})
		if err != nil {
			t.Fatal(err)
		}
		body := verify.SampleBody(name, "evt_1")
		h, err := v.Sign(verify.SignInput{Body: body, Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		var head bytes.Buffer
		_ = h.Write(&head)
		x := explaining{request: file(t, "dump", head.String()+"\r\n"+string(body)), sender: name, secrets: []string{verify.SampleSecret(name)}}
		if text, ok := explained(t, x); !ok {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestExplainKnowsHandshakes(t *testing.T) {
	v, err := verify.New(verify.Config{Sender: "slack", Secrets: []verify.Secret{{Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	const challenge = `{"type":"url_verification","challenge":"c"}`
	h, err := v.Sign(verify.SignInput{Body: []byte(challenge), Now: savedAt})
	if err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	_ = h.Write(&head)
	signed := head.String() + "\r\n" + challenge
	meta := "GET /hooks?hub.mode=subscribe&hub.challenge=1&hub.verify_token=t HTTP/1.1\r\n\r\n"
	for _, c := range []struct {
		sender, dump string
		ok           bool
		want         string
	}{
		{"slack", signed, true, "the handshake slack"},
		{"slack", strings.Replace(signed, "challenge\":\"c", "challenge\":\"d", 1), false, "forged"},
		{"paymos", signed, false, "unsigned"},
		{"meta", meta, true, "the handshake meta"},
		{"meta", strings.Replace(meta, "subscribe", "other", 1), false, "unsigned"},
		{"stripe", meta, false, "unsigned"},
	} {
		text, ok := explained(t, explaining{request: file(t, "dump", c.dump), sender: c.sender, secrets: []string{secret}})
		if ok != c.ok {
			t.Errorf("%s: accepted is %v", c.sender, ok)
		}
		says(t, text, c.want)
	}
	config := "http://a.test {\nwebhook_dedupe meta {\nsecret " + secret + "\nevent_id none\nhandshake none\n}\n}\n"
	if text, ok := explained(t, explaining{request: file(t, "dump", meta), config: file(t, "Caddyfile", config), adapter: "caddyfile"}); ok {
		t.Errorf("a handshake that the route has not: %s", text)
	}
}

func TestExplainReadsHeadersAndBodyFromFilesOfTheirOwn(t *testing.T) {
	head, _, _ := strings.Cut(readFile(t, saved(t, secret, savedBody)), "\r\n\r\n")
	_, head, _ = strings.Cut(head, "\r\n")
	x := explaining{headers: file(t, "headers", head+"\n"), body: file(t, "body", savedBody), sender: "paymos", secrets: []string{secret}}
	if text, ok := explained(t, x); !ok {
		t.Error(text)
	}
	x.headers = file(t, "headers", "not a header")
	text, _ := explained(t, x)
	says(t, text, "line 1")
}

func TestExplainTakesTheRouteFromAConfiguration(t *testing.T) {
	t.Setenv("SHOP_SECRET", secret)
	dump := saved(t, secret, savedBody)
	one := "http://a.test {\nwebhook_dedupe /hooks paymos {\nsource shop\nsecret {env.SHOP_SECRET}\n}\n}\n"
	two := one + "http://b.test {\nroute {\nwebhook_dedupe paymos {\nsource other\nsecret {env.NO_SUCH_VARIABLE_IS_SET}\nprevious_secret another until 2020-01-01T00:00:00Z\n}\n}\n}\n"
	for _, c := range []struct {
		name, config, route string
		ok                  bool
		want                []string
	}{
		{"the only route", one, "", true, []string{"evt_9"}},
		{"the route by name", two, "shop", true, []string{"evt_9"}},
		{"the secret of another route", two, "other", false, []string{`the route "shop"`, "note: secret 1 cannot be used"}},
		{"several routes", two, "", false, []string{"--route", "shop, other"}},
		{"no such route", two, "third", false, []string{`no route "third"`, "shop, other"}},
		{"no route", "http://a.test {\nrespond ok\n}\n", "", false, []string{"no webhook_dedupe route"}},
		{"a custom scheme", "http://a.test {\nwebhook_dedupe {\nsecret {env.SHOP_SECRET}\nevent_id json event_id\nsignature {\nheader X-Webhook-Signature\nlabel v1\npayload {timestamp}:{body}\ntimestamp field t\n}\n}\n}\n", "", false, []string{"What is signed is {timestamp}.{body}."}},
	} {
		x := explaining{request: dump, config: file(t, "Caddyfile", c.config), adapter: "caddyfile", route: c.route}
		text, ok := explained(t, x)
		if ok != c.ok {
			t.Errorf("%s: accepted is %v", c.name, ok)
		}
		says(t, text, c.want...)
	}
}

func TestExplainTakesMethodAndURLFromTheFlags(t *testing.T) {
	v, err := verify.New(verify.Config{
		Scheme: &verify.Scheme{Headers: []string{"X-Sig"}, Payload: "{method}{url}{body}"}, PublicURL: "https://shop.test",
		EventID: []verify.IDSource{{Kind: verify.FromBodySHA256}}, Secrets: []verify.Secret{{Value: secret}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Sign(verify.SignInput{Method: http.MethodPut, URL: "https://shop.test/hooks?a=b", Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	config := file(t, "Caddyfile", "http://a.test {\nwebhook_dedupe {\nsecret "+secret+"\nevent_id body_sha256\npublic_url https://shop.test\nsignature {\nheader X-Sig\npayload {method}{url}{body}\n}\n}\n}\n")
	x := explaining{headers: file(t, "headers", "X-Sig: "+h.Get("X-Sig")), body: file(t, "body", "{}"), config: config, adapter: "caddyfile"}
	for _, url := range []string{"/hooks?a=b", "http://10.0.0.1:8080/hooks?a=b"} {
		x.method, x.url = http.MethodPut, url
		if text, ok := explained(t, x); !ok {
			t.Error(text)
		}
	}
}

func TestExplainDecodesAsTheRouteDoes(t *testing.T) {
	head, _, _ := strings.Cut(readFile(t, saved(t, secret, savedBody)), "\r\n\r\n")
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	_, _ = w.Write([]byte(savedBody))
	_ = w.Close()
	dump := file(t, "dump", head+"\r\nContent-Encoding: gzip\r\n\r\n"+body.String())
	route := "http://a.test {\nwebhook_dedupe paymos {\nsecret " + secret + "\nsigned_body decoded\n}\n}\n"
	text, ok := explained(t, explaining{request: dump, config: file(t, "Caddyfile", route), adapter: "caddyfile"})
	if !ok {
		t.Error(text)
	}
	says(t, text, "evt_9")
	wire := strings.Replace(route, "signed_body decoded", "signed_body wire", 1)
	text, ok = explained(t, explaining{request: dump, config: file(t, "Caddyfile", wire), adapter: "caddyfile"})
	if ok {
		t.Error("it is accepted")
	}
	says(t, text, "signed_body decoded", "(body-decompressed)")
	head, _, _ = strings.Cut(readFile(t, saved(t, secret, body.String())), "\r\n\r\n")
	dump = file(t, "dump", head+"\r\nContent-Encoding: gzip\r\n\r\n"+body.String())
	text, ok = explained(t, explaining{request: dump, config: file(t, "Caddyfile", route), adapter: "caddyfile"})
	if ok {
		t.Error("what is signed on the wire is accepted")
	}
	says(t, text, "It would verify so: The sender signs the body as it comes, compressed (signed_body wire). (body-decoded)")
}
