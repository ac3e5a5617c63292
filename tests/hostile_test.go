package tests

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// longestLogLine is what no line of the module's log may exceed, whatever a
// stranger sends.
const longestLogLine = 2_000

// assertTameLog fails the test if a line of the module's own is long.
func assertTameLog(t *testing.T, g *harness.Gateway) {
	t.Helper()
	for _, line := range g.OwnLines() {
		if len(line) > longestLogLine {
			t.Errorf("a log line is %d bytes long: %.300s...", len(line), line)
		}
	}
}

// wideHeaders lets heads of nearly a megabyte through to the gateway: Caddy itself
// answers those beyond 16 KiB with 431 otherwise.
func wideHeaders() harness.Option { return harness.WithServer("max_header_size 1MiB") }

// crowd is a delivery of paymos with other signatures around the right one.
func crowd(d *harness.Delivery, before, after int) *harness.Delivery {
	bogus := "v1=" + strings.Repeat("0", 64)
	at, right, _ := strings.Cut(d.Header.Get("X-Webhook-Signature"), ",")
	items := append([]string{at}, slices.Repeat([]string{bogus}, before)...)
	items = append(append(items, right), slices.Repeat([]string{bogus}, after)...)
	return d.With("X-Webhook-Signature", strings.Join(items, ","))
}

func TestHostileSignatureCrowdsAreComparedWithinTheCap(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr), wideHeaders())
	monitor := r.Monitor(t)
	s := harness.NewSender(t, "paymos")
	event := func() *harness.Delivery { return s.Event(harness.Unique("evt")) }
	lines := func(n int, last ...string) []string {
		return append(slices.Repeat([]string{"v1=" + strings.Repeat("0", 64)}, n), last...)
	}
	signature := func(d *harness.Delivery) string { return d.Header.Get("X-Webhook-Signature") }
	whole, stamped, empty := event(), event(), event()
	for name, d := range map[string]*harness.Delivery{
		"behind 16 others":               crowd(event(), 16, 0),
		"behind 200 others":              crowd(event(), 200, 0),
		"behind 200, before 200":         crowd(event(), 200, 200),
		"behind 9,999 others":            crowd(event(), 9_999, 0),
		"10,000 lines, none right":       event().With("X-Webhook-Signature", lines(10_000)...),
		"behind 9,999 lines":             whole.With("X-Webhook-Signature", lines(9_999, signature(whole))...),
		"behind 10,000 equal timestamps": stamped.With("X-Webhook-Signature", strings.Repeat("t=1,", 10_000)+signature(stamped)),
		"behind 500,000 empty items":     empty.With("X-Webhook-Signature", strings.Repeat(",", 500_000)+signature(empty)),
		"one of 500,000 digits":          event().With("X-Webhook-Signature", "t=1,v1="+strings.Repeat("0", 500_000)),
		"a timestamp of 500,000 digits":  event().With("X-Webhook-Signature", "t="+strings.Repeat("1", 500_000)+",v1="+strings.Repeat("0", 64)),
	} {
		if a := g.Send(t, d); a.String() != "401" {
			t.Errorf("%s: the sender got %q", name, a)
		}
		assertReached(t, u, d.Event)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	mixed := event()
	for _, d := range map[string]*harness.Delivery{
		"behind 15 others":     crowd(event(), 15, 0),
		"before 200 others":    crowd(event(), 0, 200),
		"between 15 and 200":   crowd(event(), 15, 200),
		"before 9,999 others":  crowd(event(), 0, 9_999),
		"before 9,999 lines":   mixed.With("X-Webhook-Signature", append([]string{signature(mixed)}, lines(9_999)...)...),
		"beside 10,000 values": event().With("X-Noise", slices.Repeat([]string{"x"}, 10_000)...),
	} {
		g.Expect(t, d, "200 first")
		g.Expect(t, d, "200 duplicate")
	}
	assertTameLog(t, g)
}

func TestHostileHeaderOfTenThousandIDsIsAmbiguous(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u)+"\n"+route("/head", "github")+"reverse_proxy "+u.Addr, harness.WithRedis(r.Addr), wideHeaders())
	monitor := r.Monitor(t)
	var others []string
	for i := range 10_000 {
		others = append(others, fmt.Sprint("evt_", i))
	}
	d := harness.NewSender(t, "github").Event(harness.Unique("evt")).To("/head")
	g.Expect(t, d.With("X-GitHub-Delivery", others...), "400")
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	assertReached(t, u, d.Event)
	g.Expect(t, d.With("X-GitHub-Delivery", slices.Repeat([]string{d.Event}, 10_000)...), "200 first")
	g.Expect(t, d, "200 duplicate")
	// Where the id is signed, an unsigned header of many ids changes nothing.
	signed := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, signed.With("X-Webhook-Id", others...), "200 first")
	g.Expect(t, signed, "200 duplicate")
	assertTameLog(t, g)
}

// hostileIDs differ from each other, though careless code may confuse some.
func hostileIDs() []string {
	long := strings.Repeat("a", 10_000)
	return []string{
		long + "1", long + "2", "1" + long, long + strings.Repeat("\x01", 10), long + " ", strings.Repeat("é", 5_000),
		"*", "?", "[a-z]", "evt_*", "evt_?", "webhook_dedupe:*", "^[^a]", `\*`,
		`]] redis.call('FLUSHALL')`, `") redis.call('DEL', KEYS[1]) --`, "KEYS[1]", `"; FLUSHALL; "`, "{evt}", "{evt", "evt}", "{}evt",
		"%s%n%d%x", "%!s(MISSING)", "%00", "%0d%0a", "{{.}}", "${env:HOME}", "{env.HOME}", "{http.request.uri}", "$(id)", "`id`", "' OR 1=1 --",
		"../../etc/passwd", "#evt", "evt~AAAAAAAAAAA", "~", ":", "pay:evt", "<script>", `\`, `"`, `\u0000`,
		"\u00e9", "e\u0301", "\u202eevt", "\U0001F9FE", "\ufeffevt", "evt", "evt\u200b", "\ufffd", "Evt", "ｅｖｔ",
	}
}

// controlIDs can come where a sender can escape them: in JSON and in a query.
func controlIDs() []string {
	return []string{
		"\x00", "\x00\x00", "evt\x00", "\x00evt", "evt\x00\x00", "evt\r\nX-Evil: 1", "evt\n", "evt\r", "evt\t", "\x1b[2Jevt", "evt\x7f",
		"evt\r\n*1\r\n$8\r\nFLUSHALL\r\n", "evt\u0085", "evt\u2028", "\b\bevt", strings.Repeat("\x00", 10_000), strings.Repeat("\n", 9_999) + "x",
	}
}

func TestHostileIDsAreEventsOfTheirOwnAndKeysStayPlain(t *testing.T) {
	t.Parallel()
	type kind struct {
		line string
		ids  []string
		make func(event, id string) *harness.Delivery
	}
	s, body := harness.NewSender(t, "github"), inBody(t, "id")
	escaped := append(hostileIDs(), controlIDs()...)
	plain := slices.DeleteFunc(hostileIDs(), func(id string) bool {
		return strings.TrimSpace(id) != id || strings.ContainsFunc(id, unicode.IsControl) // HTTP itself does not let them
	})
	kinds := map[string]kind{
		"json": {"event_id json id", escaped, func(event, id string) *harness.Delivery {
			quoted, _ := json.Marshal(id)
			return signedAs(body, event, `{"id":`+string(quoted)+`}`)
		}},
		"query": {"event_id query id", escaped, func(event, id string) *harness.Delivery {
			return signedAs(s, event, `{}`).To("/pay?id=" + url.QueryEscape(id))
		}},
		"header": {"event_id header X-Id", plain, func(event, id string) *harness.Delivery {
			return signedAs(s, event, `{}`).With("X-Id", id)
		}},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			r := harness.StartRedis(t)
			r.Do("SET", "canary", "alive")
			site := route("/pay", "github", k.line, "on_reused_id duplicate") +
				"reverse_proxy " + u.Addr + " {\nheader_up X-Event {http.webhook_dedupe.event_id}\n}"
			g := harness.StartGateway(t, site, harness.WithRedis(r.Addr), wideHeaders())
			event := harness.Unique("evt")
			for _, word := range []string{"first", "duplicate"} {
				for _, id := range k.ids {
					if a := g.Send(t, k.make(event, id)); a.String() != "200 "+word {
						t.Errorf("id %.100q: the sender got %q, want %q", id, a, word)
					}
				}
			}
			assertPlainKeys(t, r, len(k.ids))
			assertOneLineEach(t, u, event, k.ids)
			harness.Eventually(t, "every delivery is a line of the log", func() bool {
				return len(g.Logs(func(e harness.Entry) bool { return e.Text("msg") == "delivery" })) == 2*len(k.ids)
			})
			assertTameLog(t, g)
		})
	}
}

// assertPlainKeys checks that Redis holds a short and plain key for each of n
// events, and what it held before.
func assertPlainKeys(t *testing.T, r *harness.Redis, n int) {
	t.Helper()
	keys := slices.DeleteFunc(r.Keys(), func(k string) bool { return k == "canary" })
	if len(keys) != n {
		t.Errorf("%d ids made %d keys", n, len(keys))
	}
	for _, key := range keys {
		if len(key) > 128 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Errorf("a key is %d bytes long, or holds what is not plain: %.200q", len(key), key)
		}
	}
	if got := r.Do("GET", "canary"); got != "alive" {
		t.Errorf("another user's key is %q now", got)
	}
}

// assertOneLineEach checks what the application was told of each id: the text
// itself, or its escaped form, and nothing that the id made of it.
func assertOneLineEach(t *testing.T, u *harness.Upstream, event string, ids []string) {
	t.Helper()
	seen := u.Requests(event)
	if len(seen) != len(ids) {
		t.Fatalf("%d ids made %d requests", len(ids), len(seen))
	}
	for i, s := range seen {
		told := s.Header.Get("X-Event")
		if s.Header.Get("X-Evil") != "" || strings.ContainsFunc(told, unicode.IsControl) {
			t.Errorf("id %.100q: the application was told %.100q", ids[i], told)
		}
		if !strings.ContainsFunc(ids[i], func(c rune) bool { return c < ' ' || c > '~' }) && told != strings.TrimSpace(ids[i]) {
			t.Errorf("id %.100q: the application was told %.100q", ids[i], told)
		}
	}
}
