package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// stores starts what each kind of store needs and says how to use it.
var stores = map[string]func(t *testing.T) harness.Option{
	"file":   func(*testing.T) harness.Option { return harness.WithStore("file") },
	"memory": func(*testing.T) harness.Option { return harness.WithStore("memory") },
	"redis":  func(t *testing.T) harness.Option { return harness.WithRedis(harness.StartRedis(t).Addr) },
}

// customLines is a scheme of one's own, and customScheme is the same for the
// sender.
const customLines = `signature {
	header X-Sig X-Sig-Old
	separator ;
	label mac
	prefix sha512:
	algorithm sha512
	encoding base64url
	payload "{method}:{timestamp}:{body}"
	timestamp header X-Sent-At unix_ms
}
event_id json meta.event
event_id header X-Shop
tolerance 1h
retry_window 24h`

var customScheme = verify.Config{
	Scheme: &verify.Scheme{
		Headers: []string{"X-Sig", "X-Sig-Old"}, Separator: ";", Labels: []string{"mac"}, Prefix: "sha512:",
		Algorithm: verify.SHA512, Encoding: verify.Base64URL, Payload: "{method}:{timestamp}:{body}",
		Timestamp: verify.Timestamp{Header: "X-Sent-At", Unit: verify.UnixMillis},
	},
	EventID: []verify.IDSource{{Kind: verify.FromJSON, Name: "meta.event"}, {Kind: verify.FromHeader, Name: "X-Shop"}},
}

// senders are all that sign.
func senders() (names []string) {
	for _, name := range verify.Senders() {
		if s, _ := verify.SenderNamed(name); s.Authenticator == "" {
			names = append(names, name)
		}
	}
	return names
}

// at is the path of a sender's route. Its end keeps the routes of senders apart
// of which one's name begins with another's.
func at(name string) string { return "/" + name + "/" }

// allSenders is a site with a route for every sender, and the custom scheme's.
func allSenders(u *harness.Upstream) (site string) {
	for _, name := range senders() {
		secret, lines := harness.Route(name)
		site += route(at(name), name, append(lines, "secret "+secret)...)
	}
	return site + route("/custom", "", customLines) + "reverse_proxy " + u.Addr
}

func TestFirstDeliveryPassesAndItsCopiesDoNot(t *testing.T) {
	t.Parallel()
	for store, use := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, allSenders(u), use(t))
			for _, name := range senders() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := harness.NewSender(t, name)
					id := harness.Unique("evt")
					body := verify.SampleBody(name, id)
					first, anew := s.WithBody(id, body), s.Signed(id, body, time.Now().Add(-time.Minute))
					if facts, _ := verify.SenderNamed(name); facts.NoEventID != "" {
						anew = first // the route takes the body for the id
					}
					passesOnce(t, u, g, first.To(at(name)), anew.To(at(name)))
				})
			}
			t.Run("custom", func(t *testing.T) {
				t.Parallel()
				s := harness.CustomSender(t, customScheme)
				id := harness.Unique("evt")
				body := fmt.Appendf(nil, `{"meta":{"event":%q}}`, id)
				first := s.WithBody("shop-1", body)
				first.Event = id
				first = first.To("/custom").With(harness.EventHeader, id)
				again := first.With("X-Sig-Old", first.Header.Get("X-Sig")).With("X-Sig", "mac=other;x")
				passesOnce(t, u, g, first, again)
				// The other part of the id makes it another event.
				g.Expect(t, first.With("X-Shop", "shop-2"), "503")
				other := s.Signed("shop-2", body, time.Now().Add(-time.Minute)).To("/custom").With(harness.EventHeader, id)
				g.Expect(t, other, "200 first")
			})
		})
	}
}

// passesOnce sends an event three times, the last time signed anew.
func passesOnce(t *testing.T, u *harness.Upstream, g *harness.Gateway, d, signedAnew *harness.Delivery) {
	t.Helper()
	a := g.Expect(t, d, "200 first")
	if a.Body != "upstream says 200" || a.Header.Get("X-From-Upstream") != "yes" {
		t.Errorf("the sender of the first delivery got %q with %v", a.Body, a.Header)
	}
	for _, again := range []*harness.Delivery{d, signedAnew} {
		a := g.Expect(t, again, "200 duplicate")
		if a.Body != "" || a.Header.Get("X-From-Upstream") != "" {
			t.Errorf("the sender of a copy got %q with %v", a.Body, a.Header)
		}
	}
	assertReached(t, u, d.Event, "first")
}

func TestRoutesDoNotTakeEachOthersEvents(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/a", "paymos")+route("/b", "paymos")+
		route("/c", "paymos", "source shared")+route("/d", "paymos", "source shared")+"reverse_proxy "+u.Addr)
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	for path, want := range map[string]string{"/a": "200 first", "/b": "200 first", "/c": "200 first"} {
		g.Expect(t, d.To(path), want)
	}
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		g.Expect(t, d.To(path), "200 duplicate")
	}
	assertReached(t, u, d.Event, "first", "first", "first")
}

func TestGatewaysWithDifferentKeyPrefixesShareNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	for _, prefix := range []string{"production", "staging"} {
		g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr, "key_prefix "+prefix))
		g.Expect(t, d, "200 first")
		g.Expect(t, d, "200 duplicate")
	}
	assertReached(t, u, d.Event, "first", "first")
}
