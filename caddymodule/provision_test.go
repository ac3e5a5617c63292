package caddymodule

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// routes is a configuration with these routes and a store that is never opened.
func routes(options string, directives ...string) string {
	var site strings.Builder
	for _, d := range directives {
		site.WriteString("handle {\n" + d + "\n}\n")
	}
	return "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore test never-opened " + options + "\n}\n}\nhttp://x {\n" + site.String() + "}"
}

// provisioned returns the handler of a configuration with one route.
func provisioned(t *testing.T, directive string) *Handler {
	t.Helper()
	return provisionedWith(t, newLogBook(), directive)
}

func provisionedWith(t *testing.T, logs *logBook, directive string) *Handler {
	t.Helper()
	ctx, err := provision(t, routes("", directive), logs)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	h := find(app.(*caddyhttp.App).Servers["srv0"].Routes)
	if h == nil {
		t.Fatal("there is no handler")
	}
	return h
}

func find(list caddyhttp.RouteList) *Handler {
	for _, route := range list {
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Handler:
				return h
			case *caddyhttp.Subroute:
				if found := find(h.Routes); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

const customScheme = "signature {\nheader X-Sig\n}\nevent_id header X-Id\n"

func custom(lines string) string {
	return "webhook_dedupe {\nsource orders\nsecret s3cr3t-value\n" + lines + "\n}"
}

func stripe(lines string) string {
	return "webhook_dedupe stripe {\nsource orders\nsecret s3cr3t-value\n" + lines + "\n}"
}

func TestUnsafeConfigurationIsRefusedWithRouteAndReason(t *testing.T) {
	t.Setenv("TEST_EMPTY", "")
	t.Setenv("TEST_BLANK", " \t ")
	bare := func(lines string) string { return "webhook_dedupe stripe {\nsource orders\n" + lines + "\n}" }
	for directive, want := range map[string]string{
		bare(""):                                        "no secret",
		bare("previous_secret x"):                       "no secret",
		bare(`secret ""`):                               "secret 1: it is empty",
		bare("secret {env.TEST_UNSET}"):                 "secret 1: it is empty",
		bare("secret {env.TEST_EMPTY}"):                 "secret 1: it is empty",
		bare("secret {env.TEST_BLANK}"):                 "secret 1: it is empty",
		bare("secret {file./no/such/file}"):             "secret 1: it is empty",
		bare("secret good\nsecret {env.TEST_UNSET}"):    "secret 2: it is empty",
		bare("secret pre{env.TEST_UNSET}fix"):           "secret 1: a placeholder in it is empty",
		bare("secret {http.request.host}"):              "secret 1: it holds a placeholder",
		bare("secret {nonsense}"):                       "secret 1: it holds a placeholder",
		bare("secret a\nprevious_secret {nonsense}"):    "previous_secret 1: it holds a placeholder",
		bare("secret a\nprevious_secret b until today"): "is not an RFC 3339 time",
		stripe("ttl 72h"):                               "ttl 72h0m0s is not longer than retry_window plus tolerance (72h5m0s)",
		stripe("ttl 73h\nretry_window 73h"):             "is not longer than retry_window plus tolerance",
		stripe("ttl 10d\ntolerance 8d"):                 "is not longer than retry_window plus tolerance",
		stripe(customScheme):                            "exclude each other",
		custom("event_id header X-Id"):                  "neither a sender nor a signature scheme",
		custom("signature {\nheader X-Sig\n}"):          "no event_id",
		custom("signature {\n}\nevent_id header X-Id"):  "no signature header",
		custom(strings.Replace(customScheme, "X-Sig", "X-Sig\npayload {timestamp}", 1)):                             "leaves out {body}",
		custom(strings.Replace(customScheme, "X-Sig", "X-Sig\npayload {url}{body}", 1)):                             "{url} needs public_url",
		custom(strings.Replace(customScheme, "X-Sig", "X_Sig", 1)):                                                  "Caddy drops headers",
		custom(strings.Replace(customScheme, "X-Id", "X.Id", 1)):                                                    "Caddy drops headers",
		custom(strings.Replace(customScheme, "X-Sig", "X-Sig\npayload {timestamp}{body}\ntimestamp header X_T", 1)): "Caddy drops headers",
		custom(customScheme + "replay_guard on"):                                                                    "replay_guard needs a timestamp",
		custom(customScheme + "tolerance 5m"):                                                                       "no timestamp",
		stripe("tolerance soon"):                                                                                    "neither a positive duration nor `off`",
		stripe("tolerance 0s"):                                                                                      "neither a positive duration nor `off`",
		stripe("success 302"):                                                                                       "only 2xx",
		stripe("signed_body both"):                                                                                  "neither wire nor decoded",
		stripe("signed_body decoded\nmax_body 124MiB"):                                                              "max_buffered",
		stripe("success 204 body_prefix ok"):                                                                        "has no body",
		stripe("success body_prefix 12345678901\nmax_response 10"):                                                  "longer than max_response",
		stripe("success 200 404"):                                                                                   "only 2xx",
		stripe("duplicate 409"):                                                                                     "duplicate 409",
		stripe("duplicate 100"):                                                                                     "duplicate 100",
		stripe("lease 999ms"):                                                                                       "shorter than 1s",
		stripe("reject_status 200"):                                                                                 "reject_status 200 is not an error",
		stripe("reject_status 600"):                                                                                 "reject_status 600 is not an error",
		stripe("on_unknown guess"):                                                                                  `on_unknown "guess" is neither redeliver nor hold`,
		stripe("on_store_error panic"):                                                                              "on_store_error",
		stripe("on_reused_id maybe"):                                                                                "on_reused_id",
		stripe("replay_guard maybe"):                                                                                "replay_guard",
		stripe("handshake knock"):                                                                                   "unknown handshake",
		stripe("handshake get\nmethods GET"):                                                                        "which must be signed",
		stripe("secret_format morse"):                                                                               "unknown format",
		stripe("secret_format base64"):                                                                              "is not base64",
		stripe("public_url /hook"):                                                                                  "public_url",
		stripe("log_field x cookie y"):                                                                              `log_field "x"`,
		"webhook_dedupe stripe {\nsource a:b\nsecret x\n}":                                                          "source",
	} {
		_, err := provision(t, routes("", directive), newLogBook())
		switch {
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s\ngot %v, want %q", directive, err, want)
		case !strings.Contains(err.Error(), "webhook_dedupe route"):
			t.Errorf("%s\nthe route is not named: %v", directive, err)
		case strings.Contains(err.Error(), "s3cr3t-value"):
			t.Errorf("the secret is in %v", err)
		}
	}
}

func TestRouteIsNamedByItsSourceAndSender(t *testing.T) {
	for directive, want := range map[string]string{
		stripe("lease 1ms"):                `webhook_dedupe route "orders" (sender stripe):`,
		custom(customScheme + "lease 1ms"): `webhook_dedupe route "orders" (sender with its own signature):`,
	} {
		if _, err := provision(t, routes("", directive), newLogBook()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

func TestSourcesAreNotSharedByAccident(t *testing.T) {
	implicit := "webhook_dedupe stripe {\nsecret a\n}"
	written := "webhook_dedupe stripe {\nsource stripe\nsecret a\n}"
	for name, c := range map[string]struct {
		routes []string
		want   string // empty: it is accepted
	}{
		"both implicit":     {[]string{implicit, implicit}, "has the same source"},
		"one implicit":      {[]string{written, implicit}, "has the same source"},
		"the other":         {[]string{implicit, written}, "has the same source"},
		"both written":      {[]string{written, written}, ""},
		"other secrets":     {[]string{written, strings.Replace(written, "secret a", "secret b", 1)}, "other secrets"},
		"other scheme":      {[]string{written, strings.Replace(written, "stripe {", "paymos {", 1)}, "another scheme"},
		"other reuse":       {[]string{written, strings.Replace(written, "secret a", "secret a\non_reused_id forward", 1)}, "on_reused_id"},
		"other id":          {[]string{written, strings.Replace(written, "secret a", "secret a\nevent_id json data.id", 1)}, "another scheme"},
		"order of secrets":  {[]string{strings.Replace(written, "secret a", "secret a\nsecret b", 1), strings.Replace(written, "secret a", "secret b\nsecret a", 1)}, ""},
		"different sources": {[]string{written, strings.Replace(written, "source stripe", "source other", 1)}, ""},
		"different senders": {[]string{implicit, "webhook_dedupe paymos {\nsecret a\n}"}, ""},
	} {
		_, err := provision(t, routes("", c.routes...), newLogBook())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSharedStoreNeedsAWrittenSource(t *testing.T) {
	_, err := provision(t, routes("shared", "webhook_dedupe stripe {\nsecret a\n}"), newLogBook())
	if err == nil || !strings.Contains(err.Error(), "write out a `source`") || !strings.Contains(err.Error(), "sender stripe") {
		t.Errorf("got %v", err)
	}
	if _, err := provision(t, routes("shared", stripe("")), newLogBook()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestDefaultsFollowTheSender(t *testing.T) {
	const day = 24 * time.Hour
	for sender, want := range map[string]struct {
		ttl, window, wait time.Duration
		reused, guard     string
	}{
		"github":            {7 * day, 72 * time.Hour, 4500 * time.Millisecond, "forward", "off"},
		"paymos":            {7 * day, 16*time.Hour + 3*time.Minute, 4500 * time.Millisecond, "duplicate", "off"},
		"stableops":         {7 * day, 16 * time.Hour, 4500 * time.Millisecond, "forward", "on"},
		"stripe":            {7 * day, 72 * time.Hour, 5 * time.Second, "duplicate", "off"},
		"standard-webhooks": {7 * day, 75*time.Hour + 35*time.Minute, 5 * time.Second, "duplicate", "off"},
		"svix":              {7 * day, 27*time.Hour + 35*time.Minute, 5 * time.Second, "duplicate", "off"},
		"coinbase-commerce": {7 * day, 72 * time.Hour, 5 * time.Second, "duplicate", "off"},
		"paystack":          {7 * day, 72*time.Hour + 12*time.Minute, 5 * time.Second, "forward", "off"},
		"sanity":            {7 * day, time.Minute, 5 * time.Second, "forward", "on"},
		"sentry":            {7 * day, 0, 0, "forward", "off"},
		"slack":             {7 * day, 6 * time.Minute, time.Second, "duplicate", "off"},
		"worldpay":          {8 * day, 7 * day, 4500 * time.Millisecond, "duplicate", "off"},
	} {
		h := provisioned(t, "webhook_dedupe "+sender+" {\nsecret whsec_ZGVtb25zdHJhdGlvbg==\n}")
		if time.Duration(h.TTL) != want.ttl || time.Duration(h.RetryWindow) != want.window || time.Duration(*h.Wait) != want.wait ||
			h.OnReusedID != want.reused || h.ReplayGuard != want.guard || h.Source != sender {
			t.Errorf("%s: ttl %v, window %v, wait %v, %s, guard %s, source %s", sender,
				time.Duration(h.TTL), time.Duration(h.RetryWindow), time.Duration(*h.Wait), h.OnReusedID, h.ReplayGuard, h.Source)
		}
	}
}

// Whatever the table says, a route that writes nothing but what it must is safe.
func TestDefaultsOfEverySenderKeepThePromise(t *testing.T) {
	for _, sender := range verify.Senders() {
		facts, _ := verify.SenderNamed(sender)
		if facts.Authenticator != "" {
			continue
		}
		h := provisioned(t, routeFor(sender))
		if tolerance := h.verifier.Tolerance(); h.TTL <= h.RetryWindow+caddy.Duration(tolerance) {
			t.Errorf("%s: ttl %v, window %v, tolerance %v", sender, h.TTL, h.RetryWindow, tolerance)
		}
		if facts.AttemptTimeout > 0 && time.Duration(*h.Wait) > facts.AttemptTimeout/2 {
			t.Errorf("%s: a copy waits %v, and its sender %v", sender, time.Duration(*h.Wait), facts.AttemptTimeout)
		}
		if idCounts := h.OnReusedID == "duplicate"; idCounts && !h.verifier.IDSigned() && h.ReplayGuard != "on" {
			t.Errorf("%s: anybody could send an old body ahead under the id of an event to come", sender)
		}
		if want := h.verifier.HasTimestamp() && !(h.verifier.IDSigned() && h.verifier.BodySigned()); (h.ReplayGuard == "on") != want {
			t.Errorf("%s: guard %s", sender, h.ReplayGuard)
		}
		if facts.Duplicate.Status != 0 && h.Duplicate != Reply(facts.Duplicate) {
			t.Errorf("%s: a duplicate is answered with %+v", sender, h.Duplicate)
		}
	}
}

// routeFor is a route with a preset, which has written what the preset leaves to
// the route.
func routeFor(sender string, lines ...string) string {
	if s, _ := verify.SenderNamed(sender); s.NoEventID != "" {
		lines = append(lines, "event_id body_sha256")
	}
	lines = append(lines, "secret "+secretFor(sender), "public_url https://gateway.test")
	return "webhook_dedupe " + sender + " {\n" + strings.Join(lines, "\n") + "\n}"
}

func TestDuplicatesAreAnsweredAsTheRouteSays(t *testing.T) {
	if h := provisioned(t, stripe("duplicate 202")); h.Duplicate != (Reply{Status: 202}) {
		t.Errorf("got %+v", h.Duplicate)
	}
}

func TestDefaultsOfACustomScheme(t *testing.T) {
	h := provisioned(t, "webhook_dedupe {\nsecret a\n"+customScheme+"\n}")
	for name, c := range map[string]struct{ got, want any }{
		"source":           {h.Source, "custom"},
		"retry_window":     {h.RetryWindow, caddy.Duration(16 * time.Hour)},
		"ttl":              {h.TTL, caddy.Duration(7 * 24 * time.Hour)},
		"wait":             {*h.Wait, caddy.Duration(5 * time.Second)},
		"lease":            {h.Lease, caddy.Duration(30 * time.Second)},
		"upstream_timeout": {h.UpstreamTimeout, caddy.Duration(2 * time.Minute)},
		"on_unknown":       {h.OnUnknown, "redeliver"},
		"on_reused_id":     {h.OnReusedID, "forward"},
		"replay_guard":     {h.ReplayGuard, "off"},
		"on_store_error":   {h.OnStoreError, "reject"},
		"max_response":     {h.MaxResponse, int64(1 << 20)},
		"max_body":         {h.MaxBody, int64(25 << 20)},
		"max_in_flight":    {h.MaxInFlight, 0},
		"reject_status":    {h.RejectStatus, 401},
		"duplicate":        {h.Duplicate, Reply{Status: 200}},
		"methods":          {h.allowed("GET"), "POST"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
	timestamped := "signature {\nheader X-Sig\npayload {timestamp}{body}\ntimestamp header X-T\n}\nevent_id header X-Id"
	if h := provisioned(t, "webhook_dedupe {\nsecret a\n"+timestamped+"\n}"); h.ReplayGuard != "on" || h.verifier.Tolerance() != 5*time.Minute {
		t.Errorf("guard %s, tolerance %v", h.ReplayGuard, h.verifier.Tolerance())
	}
}

func TestLongRetryWindowLengthensTheTTL(t *testing.T) {
	h := provisioned(t, stripe("retry_window 10d\ntolerance 1h"))
	if got := time.Duration(h.TTL); got != 11*24*time.Hour+time.Hour {
		t.Errorf("got %v", got)
	}
}

func TestOverriddenEventIDIsNotTrustedAlone(t *testing.T) {
	if h := provisioned(t, stripe("event_id json data.id")); h.OnReusedID != "forward" {
		t.Errorf("got %s", h.OnReusedID)
	}
}

func TestToleranceThatRefusesLateRetriesIsWarnedAbout(t *testing.T) {
	for line, warned := range map[string]bool{"": false, "tolerance off": false, "tolerance 8h5m": false, "tolerance 5m": true, "tolerance 5m\nretry_window 5m": false} {
		logs := newLogBook()
		provisionedWith(t, logs, "webhook_dedupe mailgun {\nsecret k\n"+line+"\n}")
		if got := strings.Contains(logs.String(), "refused as stale"); got != warned {
			t.Errorf("%q: warned is %v", line, got)
		}
	}
}

func TestLateTryIsWarnedAbout(t *testing.T) {
	logs := newLogBook()
	provisionedWith(t, logs, stripe("retry_window 1m\nupstream_timeout 50s\nlease 11s"))
	logs.last(t, "upstream_timeout plus lease is longer than the sender's retry window: an event in doubt may never be tried again")
	logs = newLogBook()
	provisionedWith(t, logs, stripe("retry_window 1m\nupstream_timeout 50s\nlease 10s"))
	if strings.Contains(logs.String(), "retry window") {
		t.Error("warned without a reason")
	}
}
