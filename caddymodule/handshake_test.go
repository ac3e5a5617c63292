package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// handshakeRoute has a handshake of that name, and further lines.
func handshakeRoute(name string, lines ...string) string {
	return `route {
		webhook_dedupe {
			source $SOURCE
			secret $SECRET
			signature {
				header X-Signature
			}
			event_id header X-Id
			handshake ` + name + "\n" + strings.Join(lines, "\n") + `
		}
		upstream
	}`
}

// greeting is a handshake as its sender sends it, and what the sender wants.
type greeting struct {
	name, method, query, header, contentType, body string
	signed                                         bool
	// answer is the body that the receiver answers with.
	answer string
}

// greetings are what the senders of the handshakes document.
var greetings = []greeting{
	{name: "asana", method: "POST", header: "X-Hook-Secret: b537207f20cbfa02"},
	{name: "asana", method: "POST", header: "X-Hook-Secret: b537207f20cbfa02", contentType: "application/json", body: "{}"},
	{name: "dropbox", method: "GET", query: "challenge=abc123", answer: "abc123"},
	{name: "get", method: "GET"},
	{name: "get", method: "GET", query: "any=thing"},
	{name: "head", method: "HEAD"},
	{name: "meta", method: "GET", query: "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock", answer: "1158201444"},
	{name: "microsoft-graph", method: "POST", query: "validationToken=abc%20def", contentType: "text/plain; charset=utf-8", answer: "abc def"},
	{name: "monday", method: "POST", contentType: "application/json", body: `{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}`, answer: `{"challenge":"3eZ"}`},
	{name: "monday", method: "POST", body: `{"challenge":"a"}`},
	{name: "monday", method: "POST", contentType: "application/json; charset=utf-8", body: "{ \"challenge\" : \"YQ_-0\" }\n"},
	{name: "trello", method: "HEAD"},
	{name: "woocommerce", method: "POST", contentType: "application/x-www-form-urlencoded", body: "webhook_id=12"},
	{name: "woocommerce", method: "POST", contentType: "application/x-www-form-urlencoded; charset=UTF-8", body: "webhook_id=9007199254740993"},
	{name: "x-twitter", method: "GET", query: "crc_token=edge-crc&nonce=n", answer: `{"response_token":"sha256=J0gm8au5"}`},
	{name: "x-twitter", method: "GET", query: "crc_token=edge-crc"},
	{name: "discord", method: "POST", signed: true, body: `{"type":1}`, answer: `{"type":1}`},
	{name: "discord", method: "POST", signed: true, body: `{"version":1,"application_id":"1234560123453231555","type":0}`},
	{name: "line", method: "POST", signed: true, body: `{"destination":"xxx","events":[]}`},
	{name: "pagerduty", method: "POST", signed: true, body: `{"event":{"event_type":"pagey.ping","id":"01"}}`},
	{name: "slack", method: "POST", signed: true, body: `{"token":"...","challenge":"3eZbrw1a","type":"url_verification"}`, answer: "3eZbrw1a"},
	{name: "xero", method: "POST", signed: true, body: `{"events":[ ],"lastEventSequence":0,"firstEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}`},
	{name: "zoom", method: "POST", signed: true, body: `{"event":"endpoint.url_validation","event_ts":1767225600000,"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}`, answer: `{"plainToken":"qgg8"}`},
}

// request is the greeting on its way to the gateway.
func (gr greeting) request() *http.Request {
	r := httptest.NewRequest(gr.method, "http://gateway.test/hook?"+gr.query, strings.NewReader(gr.body))
	if gr.query == "" {
		r = httptest.NewRequest(gr.method, "http://gateway.test/hook", strings.NewReader(gr.body))
	}
	if gr.contentType != "" {
		r.Header.Set("Content-Type", gr.contentType)
	}
	if name, value, ok := strings.Cut(gr.header, ": "); ok {
		r.Header.Set(name, value)
	}
	if gr.signed {
		r.Header.Set("X-Signature", hmacHex(gr.body))
	}
	return r
}

// receiver answers greetings as an application behind the gateway does, and
// counts everything that reaches it.
func (gr greeting) receiver(t *testing.T, calls *atomic.Int64) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		calls.Add(1)
		if r.Header.Get(resultHeader) != "" {
			t.Error("a forged header came through")
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != gr.body || r.ContentLength != int64(len(gr.body)) || r.URL.RawQuery != gr.query {
			t.Errorf("%s: the receiver got %q, %q, %v", gr.name, r.URL.RawQuery, body, err)
		}
		w.Header().Set("X-Hook-Secret", r.Header.Get("X-Hook-Secret"))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusOK)
		_, err = io.WriteString(w, gr.answer)
		return err
	}
}

func TestHandshakeOfEverySenderPassesWithoutTheStore(t *testing.T) {
	for _, gr := range greetings {
		var calls atomic.Int64
		g := newGateway(t, handshakeRoute(gr.name), gr.receiver(t, &calls))
		for range 2 { // the second is no duplicate
			r := gr.request()
			r.Header.Set(resultHeader, "first")
			resp := g.do(r)
			body, _ := io.ReadAll(resp.Body)
			h := resp.Header
			if resp.StatusCode != 200 || string(body) != gr.answer || h.Get(resultHeader) != "" || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("X-Hook-Secret") != r.Header.Get("X-Hook-Secret") {
				t.Errorf("%s: got %d %q %v", gr.name, resp.StatusCode, body, h)
			}
		}
		if n := count(t, "deliveries_total", "source", g.source, "result", "handshake"); n != 2 || calls.Load() != 2 {
			t.Errorf("%s: %v are counted, %d came through", gr.name, n, calls.Load())
		}
		if line := g.logs.last(t, "delivery"); line["result"] != "handshake" {
			t.Errorf("%s: logged as %v", gr.name, line)
		}
		if n := g.store.calls.Load(); n != 0 {
			t.Errorf("%s: the store was called %d times", gr.name, n)
		}
	}
}

// nearMisses are requests that are almost the greeting.
func (gr greeting) nearMisses() map[string]*http.Request {
	with := func(change func(*greeting)) *http.Request {
		changed := gr
		change(&changed)
		return changed.request()
	}
	add := func(r *http.Request, name, value string) *http.Request {
		r.Header.Add(name, value)
		return r
	}
	chunked := with(func(gr *greeting) { gr.body += "x" })
	chunked.ContentLength = -1
	misses := map[string]*http.Request{
		"another method": with(func(gr *greeting) { gr.method = "DELETE" }),
		"a delivery":     with(func(gr *greeting) { gr.method, gr.body = "POST", `{"event":"paid"}` }),
		"more body":      with(func(gr *greeting) { gr.body += "x" }),
		"much more body": with(func(gr *greeting) { gr.body += strings.Repeat(" ", maxHandshakeBody) }),
		"chunks of body": chunked,
	}
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		misses[name] = add(gr.request(), name, "PUT")
	}
	if gr.query != "any=thing" && gr.name != "get" && gr.name != "head" {
		misses["another parameter"] = with(func(gr *greeting) { gr.query += "&payload=1" })
		misses["a broken query"] = with(func(gr *greeting) { gr.query += "&%zz" })
		if gr.name != "x-twitter" {
			misses["a signature"] = add(gr.request(), "X-Signature", hmacHex("other"))
			misses["a blank signature"] = add(gr.request(), "X-Signature", "")
		}
		for pair := range strings.SplitSeq(gr.query, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if name == "" {
				continue
			}
			misses[name+" blank"] = with(func(gr *greeting) { gr.query = strings.Replace(gr.query, pair, name+"=+", 1) })
			misses[name+" twice"] = with(func(gr *greeting) { gr.query += "&" + pair })
			if name != "nonce" {
				misses["no "+name] = with(func(gr *greeting) { gr.query = strings.Trim(strings.Replace(gr.query, pair, "", 1), "&") })
			}
		}
	}
	if gr.header != "" {
		name, _, _ := strings.Cut(gr.header, ":")
		misses["no header"] = with(func(gr *greeting) { gr.header = "" })
		misses["a blank header"] = with(func(gr *greeting) { gr.header = name + ":  " })
		misses["the header twice"] = add(gr.request(), name, "other")
	}
	if gr.name == "woocommerce" || gr.name == "monday" {
		misses["another type"] = with(func(gr *greeting) { gr.contentType = "text/plain" })
	}
	switch gr.name {
	case "woocommerce":
		misses["no type"] = with(func(gr *greeting) { gr.contentType = "" })
		misses["a topic"] = add(gr.request(), "X-WC-Webhook-Topic", "order.created")
		misses["a word"] = with(func(gr *greeting) { gr.body = "webhook_id=one" })
		misses["two fields"] = with(func(gr *greeting) { gr.body += "&id=7" })
		misses["a line end"] = with(func(gr *greeting) { gr.body += "\n" })
	case "monday":
		misses["an event too"] = with(func(gr *greeting) { gr.body = `{"challenge":"a","event":{}}` })
		misses["two challenges"] = with(func(gr *greeting) { gr.body = `{"challenge":{"event":1},"challenge":"a"}` })
		misses["escapes"] = with(func(gr *greeting) { gr.body = `{"challenge":"a\",\"event\":\"b"}` })
	case "meta":
		misses["another mode"] = with(func(gr *greeting) { gr.query = strings.Replace(gr.query, "subscribe", "unsubscribe", 1) })
	}
	return misses
}

func TestWhatIsAlmostAHandshakeReachesNothing(t *testing.T) {
	for _, gr := range greetings {
		if gr.signed {
			continue
		}
		var calls atomic.Int64
		g := newGateway(t, handshakeRoute(gr.name), counting(&calls))
		for what, r := range gr.nearMisses() {
			method := r.Method
			resp := g.do(r)
			want := http.StatusMethodNotAllowed
			if method == http.MethodPost {
				want = http.StatusUnauthorized
			}
			if resp.StatusCode != want {
				t.Errorf("%s, %s: got %d", gr.name, what, resp.StatusCode)
			}
			if allow := resp.Header.Get("Allow"); (allow != "") != (want == 405) || strings.Contains(allow, method) {
				t.Errorf("%s, %s: Allow is %q", gr.name, what, allow)
			}
		}
		if n := calls.Load(); n != 0 || g.store.calls.Load() != 0 {
			t.Errorf("%s: %d came through, the store was called %d times", gr.name, n, g.store.calls.Load())
		}
	}
}

func TestSignedHandshakeIsVerified(t *testing.T) {
	for _, gr := range greetings {
		if !gr.signed {
			continue
		}
		var calls atomic.Int64
		g := newGateway(t, handshakeRoute(gr.name), counting(&calls))
		unsigned, forged, other := gr.request(), gr.request(), gr
		unsigned.Header.Del("X-Signature")
		forged.Header.Set("X-Signature", hmacHex("other"))
		other.body = `{"type":"event_callback","event":{"event_type":"incident.triggered"},"events":[1]}`
		put := gr.request()
		put.Method = http.MethodPut
		for what, c := range map[string]struct {
			r      *http.Request
			status int
		}{
			"unsigned":       {unsigned, 401},
			"forged":         {forged, 401},
			"another event":  {other.request(), 400}, // it has no id
			"another method": {put, 405},
		} {
			if resp := g.do(c.r); resp.StatusCode != c.status || resp.Header.Get("Set-Cookie") != "" || resp.ContentLength > 0 {
				t.Errorf("%s, %s: got %d", gr.name, what, resp.StatusCode)
			}
		}
		if n := calls.Load(); n != 0 || g.store.calls.Load() != 0 {
			t.Errorf("%s: %d came through, the store was called %d times", gr.name, n, g.store.calls.Load())
		}
	}
}

func TestHandshakeLeavesDeliveriesAsTheyAre(t *testing.T) {
	for _, gr := range greetings {
		var calls atomic.Int64
		g := newGateway(t, handshakeRoute(gr.name), counting(&calls))
		for _, result := range []string{"first", "duplicate"} {
			delivery := greeting{method: "POST", signed: true, body: `{"event":"paid"}`, header: "X-Id: 1"}
			expect(t, g.do(delivery.request()), 200, result)
		}
		if calls.Load() != 1 {
			t.Errorf("%s: %d came through", gr.name, calls.Load())
		}
	}
}

// Discord's interactions begin with a ping of the type that all of its events
// have: to take these for pings would be to let every copy through.
func TestEventsOfDiscordAreNoPings(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, handshakeRoute("discord"), counting(&calls))
	for id, event := range []string{`{"type":"ENTITLEMENT_CREATE"}`, "null", `{},"event":{}`} {
		for _, result := range []string{"first", "duplicate"} {
			delivery := greeting{method: "POST", signed: true, body: `{"version":1,"type":1,"event":` + event + `}`, header: fmt.Sprint("X-Id: ", id)}
			expect(t, g.do(delivery.request()), 200, result)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d came through", calls.Load())
	}
}

func TestHandshakeSwitchesToNoOtherProtocol(t *testing.T) {
	for _, gr := range greetings {
		g := newGateway(t, handshakeRoute(gr.name), func(w http.ResponseWriter, r *http.Request) error {
			if r.Header.Get("Upgrade") != "" {
				t.Errorf("%s: the upstream is asked for %s", gr.name, r.Header.Get("Upgrade"))
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		})
		r := gr.request()
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "h2c")
		if resp := g.do(r); resp.StatusCode != http.StatusNoContent {
			t.Errorf("%s: got %d", gr.name, resp.StatusCode)
		}
	}
}

func TestHandshakeKnowsTheParametersOfThePublicURL(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, handshakeRoute("meta", "public_url https://shop.example.com/hook?tenant=7&a=b"), counting(&calls))
	challenge := "hub.mode=subscribe&hub.challenge=1&hub.verify_token=t"
	for query, want := range map[string]int{
		"tenant=7&a=b&" + challenge:      200,
		challenge + "&a=b&tenant=7":      200,
		challenge:                        200,
		"tenant=8&" + challenge:          405,
		"tenant=7&tenant=7&" + challenge: 405,
		"b=a&" + challenge:               405,
	} {
		gr := greeting{method: "GET", query: query}
		if resp := g.do(gr.request()); resp.StatusCode != want {
			t.Errorf("%s: got %d", query, resp.StatusCode)
		}
	}
}

func TestRouteAddsToTheHandshakesOfItsSenderOrTakesThemAway(t *testing.T) {
	sender := verify.Sender{Handshakes: []string{"meta", "slack"}}
	for written, want := range map[string]string{"": "meta slack", "head": "meta slack head", "none": "", "NONE": "", "Get": "meta slack get"} {
		h := &Handler{Handshake: written}
		if err := h.setHandshakes(sender); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, hs := range h.handshakes {
			names = append(names, hs.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q makes %q, want %q", written, got, want)
		}
	}
}

func TestAllowNamesDeliveriesAndHandshakes(t *testing.T) {
	g := newGateway(t, handshakeRoute("get", "methods POST PUT"), nil)
	r := httptest.NewRequest(http.MethodHead, "http://gateway.test/hook", nil)
	if resp := g.do(r); resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST, PUT, GET" {
		t.Errorf("got %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

func TestHandshakesOfAllSendersExist(t *testing.T) {
	for _, name := range verify.Senders() {
		sender, _ := verify.SenderNamed(name)
		for _, hs := range sender.Handshakes {
			if found, err := handshakeNamed(hs); err != nil || found.anyQuery {
				t.Errorf("%s: handshake %s: %v", name, hs, err)
			}
		}
	}
}
