package tests

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc/oidctest"
)

// pubsub is a route for the pushes of an issuer.
func pubsub(i *oidctest.Issuer, lines ...string) string {
	block := []string{"oidc {", "audience {env.AUDIENCE}", "email " + oidctest.Email, "jwks_url " + i.URL, "}"}
	return "webhook_dedupe /pay google-pubsub {\n" + strings.Join(append(block, lines...), "\n") + "\n}\n"
}

// push is a message as Pub/Sub delivers it.
func push(id, token string) *harness.Delivery {
	return &harness.Delivery{
		Event: id, Method: http.MethodPost, Path: "/pay", Body: verify.SampleBody("google-pubsub", id),
		Header: http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, harness.EventHeader: {id}},
	}
}

func TestPubSubPushesOnceWithItsTokens(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	i := oidctest.Start(t)
	g := harness.NewGateway(t, harness.WithEnv("AUDIENCE="+oidctest.Audience))
	site := pubsub(i) + "reverse_proxy " + u.Addr
	if output, ok := validate(t, g, "Caddyfile.pubsub", site); !ok {
		t.Fatal(output)
	}
	g.Start(site)
	if n := i.Fetches(); n != 0 {
		t.Errorf("to validate and to start, the keys were fetched %d times", n)
	}
	now := time.Now()
	id := harness.Unique("evt")
	token := i.Token(now)
	g.Expect(t, push(id, token), "200 first")
	g.Expect(t, push(id, token), "200 duplicate")

	// A retry after a rotation of the keys, as a fifth attempt.
	i.Rotate()
	retry := push(id, i.Token(now.Add(-time.Minute)))
	retry.Body = []byte(strings.Replace(string(retry.Body), `{"message"`, `{"deliveryAttempt":5,"message"`, 1))
	g.Expect(t, retry, "200 duplicate")
	assertReached(t, u, id, "first")

	other := harness.Unique("evt")
	for what, d := range map[string]*harness.Delivery{
		"no token":         push(other, "").With("Authorization"),
		"another audience": push(other, i.Token(now, map[string]any{"aud": "https://evil.example.com"})),
		"another account":  push(other, i.Token(now, map[string]any{"email": "evil@project.iam.gserviceaccount.com"})),
		"expired":          push(other, i.Token(now.Add(-2*time.Hour))),
		"withdrawn key":    push(other, token),
	} {
		if a := g.Send(t, d); a.String() != "401" {
			t.Errorf("%s: the sender got %q", what, a)
		}
	}
	assertReached(t, u, other)
	g.Expect(t, push(other, i.Token(now)), "200 first")
	assertReached(t, u, other, "first")
	if strings.Contains(strings.Join(g.Output(), "\n"), token[:len(token)/2]) {
		t.Error("a token is in the log")
	}
}

func TestPushesWaitForTheKeysOfTheirIssuer(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	i := oidctest.Start(t)
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	g := harness.StartGateway(t, pubsub(i, "reject_status 404")+"reverse_proxy "+u.Addr, harness.WithEnv("AUDIENCE="+oidctest.Audience))
	d := push(harness.Unique("evt"), i.Token(time.Now()))
	if a := g.Expect(t, d, "503"); a.Header.Get("Retry-After") == "" {
		t.Errorf("the sender is told nothing: %v", a.Header)
	}
	if n := g.Metric("rejections_total", `reason="keys"`); n != 1 {
		t.Errorf("%v are counted", n)
	}
	assertReached(t, u, d.Event)
	i.Answer(nil)
	g.Expect(t, d, "200 first")
	assertReached(t, u, d.Event, "first")
}
