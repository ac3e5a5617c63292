package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify/oidc/oidctest"
)

// oidcBlock is for the tokens of an issuer, whose keys are at a URL.
func oidcBlock(url string) string {
	return "oidc {\naudience " + oidctest.Audience + "\nemail " + oidctest.Email + "\njwks_url " + url + "\n}\n"
}

func pubsubRoute(i *oidctest.Issuer, lines string) string {
	return "route {\nwebhook_dedupe google-pubsub {\nsource $SOURCE\n" + oidcBlock(i.URL) + lines + "\n}\nupstream\n}"
}

// pushed is a delivery with a token.
func pushed(token, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gateway.test/push", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func message(id string) string { return string(verify.SampleBody("google-pubsub", id)) }

func TestPushWithATokenIsDeduplicated(t *testing.T) {
	var calls atomic.Int64
	i := oidctest.Start(t)
	g := newGateway(t, pubsubRoute(i, ""), counting(&calls))
	if n := i.Fetches(); n != 0 {
		t.Errorf("the keys were fetched %d times before anything came", n)
	}
	token := i.Token(time.Now())
	expect(t, g.do(pushed(token, message("1"))), 200, "first")
	expect(t, g.do(pushed(token, message("1"))), 200, "duplicate")
	expect(t, g.do(pushed(token, message("2"))), 200, "first")
	// A retry has another token, and another body where dead letters are counted.
	again := strings.Replace(message("1"), `{"message"`, `{"deliveryAttempt":5,"message"`, 1)
	expect(t, g.do(pushed(i.Token(time.Now().Add(-time.Minute)), again)), 200, "duplicate")
	if calls.Load() != 2 || i.Fetches() != 1 {
		t.Errorf("%d calls, %d fetches", calls.Load(), i.Fetches())
	}
	if n := count(t, "previous_secret_total", "source", g.source); n != 0 {
		t.Errorf("%v previous secrets where there is none", n)
	}
}

func TestPushWithoutAGoodTokenReachesNothing(t *testing.T) {
	var calls atomic.Int64
	i := oidctest.Start(t)
	g := newGateway(t, pubsubRoute(i, "reject_status 403"), counting(&calls))
	now := time.Now()
	none := pushed("", message("1"))
	none.Header.Del("Authorization")
	expect(t, g.do(none), 403, "")
	expect(t, g.do(pushed(i.Token(now, map[string]any{"aud": "https://evil.example.com"}), message("1"))), 403, "")
	expect(t, g.do(pushed(i.Token(now, map[string]any{"email": "evil@example.com"}), message("1"))), 403, "")
	expect(t, g.do(pushed(i.Token(longAgo), message("1"))), 401, "")
	expect(t, g.do(pushed(i.Token(now), `{"message":{}}`)), 400, "")
	for reason, want := range map[string]float64{"unsigned": 1, "forged": 2, "stale": 1, "missing_id": 1} {
		if n := count(t, "rejections_total", "source", g.source, "reason", reason); n != want {
			t.Errorf("%v counted as %s", n, reason)
		}
	}
	if calls.Load() != 0 || g.store.calls.Load() != 0 {
		t.Errorf("%d calls of the upstream, %d of the store", calls.Load(), g.store.calls.Load())
	}
}

func TestPushIsAskedForAgainWhileTheKeysAreAway(t *testing.T) {
	var calls atomic.Int64
	i := oidctest.Start(t)
	i.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	g := newGateway(t, pubsubRoute(i, "reject_status 410"), counting(&calls))
	token := i.Token(time.Now())
	resp := g.do(pushed(token, message("1")))
	expect(t, resp, 503, "")
	if got := resp.Header.Get("Retry-After"); got != "10" {
		t.Errorf("Retry-After %q", got)
	}
	if n := count(t, "rejections_total", "source", g.source, "reason", "keys"); n != 1 || calls.Load() != 0 {
		t.Errorf("%v counted, %d calls", n, calls.Load())
	}
	g.logs.last(t, "deliveries may have to wait for keys")
	i.Answer(nil)
	expect(t, g.do(pushed(token, message("1"))), 200, "first")
	if strings.Contains(g.logs.String(), token) {
		t.Error("the token is in the log")
	}
}

func TestTokensProveARouteWithoutASender(t *testing.T) {
	i := oidctest.Start(t)
	g := newGateway(t, "route {\nwebhook_dedupe {\nsource $SOURCE\n"+oidcBlock(i.URL)+"event_id header X-Goog-Pubsub-Message-Id\n}\nupstream\n}", counting(new(atomic.Int64)))
	unwrapped := func(id, body string) *http.Request {
		r := pushed(i.Token(time.Now()), body)
		r.Header.Set("X-Goog-Pubsub-Message-Id", id)
		return r
	}
	expect(t, g.do(unwrapped("1", "hello")), 200, "first")
	expect(t, g.do(unwrapped("1", "hello")), 200, "duplicate")
	expect(t, g.do(unwrapped("2", "hello")), 200, "first")
	expect(t, g.do(unwrapped("1", "other")), 200, "first") // on_reused_id forward
}

func TestDefaultsOfARouteWithTokens(t *testing.T) {
	block := "oidc {\naudience a\nemail e\n}\n"
	h := provisioned(t, "webhook_dedupe google-pubsub {\nsource orders\n"+block+"}")
	if h.OnReusedID != "duplicate" || h.ReplayGuard != "off" || time.Duration(h.RetryWindow) != 7*24*time.Hour ||
		time.Duration(h.TTL) != 8*24*time.Hour || time.Duration(*h.Wait) != 4500*time.Millisecond {
		t.Errorf("on_reused_id %s, replay_guard %s, retry_window %v, ttl %v, wait %v", h.OnReusedID, h.ReplayGuard, h.RetryWindow, h.TTL, h.Wait)
	}
	h = provisioned(t, "webhook_dedupe google-pubsub {\nsource orders\nevent_id header x-goog-pubsub-message-id\n"+block+"}")
	if h.OnReusedID != "forward" {
		t.Errorf("on_reused_id %s with an event_id of one's own", h.OnReusedID)
	}
}

func TestPlaceholdersOfTokensAreResolvedOnce(t *testing.T) {
	t.Setenv("TEST_AUDIENCE", oidctest.Audience)
	i := oidctest.Start(t)
	site := strings.Replace(pubsubRoute(i, ""), "audience "+oidctest.Audience, "audience {env.TEST_AUDIENCE}", 1)
	g := newGateway(t, site, counting(new(atomic.Int64)))
	expect(t, g.do(pushed(i.Token(time.Now()), message("1"))), 200, "first")
}

func TestUnsafeTokensAreRefusedWithRouteAndReason(t *testing.T) {
	t.Setenv("TEST_EMPTY", "")
	block := "oidc {\naudience a\nemail e\n}\n"
	pubsub := func(lines string) string { return "webhook_dedupe google-pubsub {\nsource orders\n" + lines + "\n}" }
	bare := func(lines string) string { return "webhook_dedupe {\nsource orders\n" + lines + "\n}" }
	for directive, want := range map[string]string{
		pubsub(""):                                                                 "give an `oidc` block",
		pubsub("secret s3cr3t-value"):                                              "give an `oidc` block",
		pubsub(block + "secret s3cr3t-value"):                                      "exclude each other",
		pubsub(block + "previous_secret s3cr3t"):                                   "exclude each other",
		pubsub(block + "secret_format hex"):                                        "exclude each other",
		pubsub(block + "tolerance 5m"):                                             "no timestamp",
		pubsub(block + "replay_guard on"):                                          "replay_guard needs a timestamp",
		pubsub(block + "ttl 7d"):                                                   "ttl",
		pubsub("oidc {\naudience a\n}"):                                            "email is required",
		pubsub("oidc {\nemail e\n}"):                                               "audience is required",
		pubsub("oidc"):                                                             "audience is required",
		pubsub("oidc {\naudience {env.TEST_EMPTY}\nemail e\n}"):                    "audience: it is empty",
		pubsub("oidc {\naudience a\nemail {env.TEST_EMPTY}\n}"):                    "email: it is empty",
		pubsub("oidc {\naudience a\nemail e\njwks_url {env.TEST_EMPTY}\n}"):        "jwks_url: it is empty",
		pubsub("oidc {\naudience a\nemail {http.request.host}\n}"):                 "email: it holds a placeholder",
		pubsub("oidc {\naudience a\nemail e\njwks_url http://keys.example.com\n}"): "not https",
		pubsub("oidc {\naudience a\nemail e\nissuer https://id.example.com\n}"):    "jwks_url is required",
		bare(block):                "no event_id",
		bare(block + customScheme): "exclude each other",
		"webhook_dedupe stripe {\nsource orders\n" + block + "}": "signs its deliveries",
	} {
		_, err := provision(t, routes("", directive), newLogBook())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"orders"`) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s\ngives %v; want %q", directive, err, want)
		}
	}
}

func TestRoutesShareASourceOnlyWithTheSameTokens(t *testing.T) {
	route := func(audience string) string {
		return "webhook_dedupe google-pubsub {\nsource orders\noidc {\naudience " + audience + "\nemail e\n}\n}"
	}
	if _, err := provision(t, routes("", route("a"), route("a")), newLogBook()); err != nil {
		t.Error(err)
	}
	if _, err := provision(t, routes("", route("a"), route("b")), newLogBook()); err == nil {
		t.Error("two routes with different audiences share a source")
	}
}

func TestMistypedTokensAreRefused(t *testing.T) {
	for block, want := range map[string]string{
		"oidc now":                         "rong argument count",
		"oidc {\naudience\n}":              "oidc wants",
		"oidc {\nissuer a b\n}":            "oidc wants",
		"oidc {\nissuer a\nissuer b\n}":    "oidc wants",
		"oidc {\nsubject a\n}":             "unrecognized oidc subdirective 'subject'",
		"oidc {\n}\noidc {\naudience a\n}": "oidc is given twice",
	} {
		if _, err := adaptRoute(t, "webhook_dedupe google-pubsub {\n"+block+"\n}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v", block, err)
		}
	}
}

func TestNobodyCanSendForASenderWithTokens(t *testing.T) {
	s := sending{sender: "google-pubsub", secret: secret, url: "http://gateway.test"}
	if _, err := s.request(); err == nil || !strings.Contains(err.Error(), "a token that only its issuer can make") {
		t.Errorf("got %v", err)
	}
}

func TestTokensAreNotExplained(t *testing.T) {
	config := "http://a.test {\nwebhook_dedupe google-pubsub {\n" + oidcBlock("https://keys.example.com") + "}\n}\n"
	for _, x := range []explaining{
		{config: file(t, "Caddyfile", config), adapter: "caddyfile"},
		{sender: "google-pubsub"},
	} {
		x.request = file(t, "delivery", "POST / HTTP/1.1\r\nAuthorization: Bearer x.y.z\r\n\r\n{}")
		text, _ := explained(t, x)
		says(t, text, "its deliveries carry a token")
	}
}
