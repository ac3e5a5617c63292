package tests

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestHostileNestingIsRefusedOrReadWithoutHarm(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	lines := []string{"event_id json id", "log_field deep json deep"}
	g := harness.StartGateway(t, route("/pay", "github", lines...)+"reverse_proxy "+u.Addr, harness.WithRedis(r.Addr))
	s := inBody(t, "id")
	nest := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, n := range []int{9_000, 9_999, 10_000, 100_000} {
		for name, c := range map[string]struct {
			body    string
			without bool // an id
		}{
			"beside, arrays":    {`{"deep":` + nest("[", "", "]", n) + `,"id":"ID"}`, false},
			"behind, objects":   {`{"id":"ID","deep":` + nest(`{"a":`, "1", "}", n) + `}`, false},
			"the same name":     {`{"deep":` + nest(`{"id":`, "1", "}", n) + `,"id":"ID"}`, false},
			"as the id, arrays": {`{"id":` + nest("[", `"ID"`, "]", n) + `}`, true},
			"as the id":         {nest(`{"id":`, `"ID"`, "}", n), true},
			"around the id":     {nest("[", `{"id":"ID"}`, "]", n), true},
			"without an end":    {`{"id":"ID","deep":` + strings.Repeat("[", n), true},
			"without a start":   {`{"id":"ID"}` + strings.Repeat("}", n), true},
			"quotes inside":     {`{"deep":` + nest(`["]\"",`, "0", "]", n) + `,"id":"ID"}`, false},
		} {
			d := signedAs(s, harness.Unique("evt"), "")
			d = signedAs(s, d.Event, strings.Replace(c.body, "ID", d.Event, 1))
			a := g.Send(t, d)
			if a.String() != "400" && (c.without || a.String() != "200 first") {
				t.Errorf("%d levels, %s: the sender got %q", n, name, a)
			}
			if n < 9_999 && !c.without && a.String() != "200 first" {
				t.Errorf("%d levels, %s: a valid body got %q", n, name, a)
			}
			if (len(u.Requests(d.Event)) == 1) != (a.Status == 200) {
				t.Errorf("%d levels, %s: the sender got %q, the upstream %d requests", n, name, a, len(u.Requests(d.Event)))
			}
		}
		plain := harness.Unique("evt")
		g.Expect(t, signedAs(s, plain, `{"id":"`+plain+`"}`), "200 first")
	}
	assertTameLog(t, g)
}

func TestHostileSlowBodiesHoldNobodyElseUp(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	// Were their slots or the memory that they announce set aside, none would be left.
	site := githubSite(u, "max_in_flight 4", "max_body 1MiB")
	g := harness.StartGateway(t, site, harness.WithGlobal("webhook_dedupe {", "store redis {", "address "+r.Addr, "}", "max_buffered 2MiB", "}"))
	monitor := r.Monitor(t)
	s := harness.NewSender(t, "github")
	slow := s.WithBody(harness.Unique("evt"), []byte("{}")) // what comes is signed in itself
	var conns []net.Conn
	for range 50 {
		conn := g.Dial(t)
		if _, err := io.WriteString(conn, slow.Head(g.Host())+"Content-Length: "+strconv.Itoa(1<<20)+"\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for range 20 {
		g.Expect(t, s.Event(harness.Unique("evt")), "200 first")
		for _, conn := range conns[:5] { // they go on, byte by byte
			_, _ = io.WriteString(conn, " ")
		}
	}
	for _, conn := range conns {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if a := harness.ReadAnswer(conn); a.String() != "400" {
			t.Errorf("a body that never came whole: the sender got %q", a)
		}
	}
	if n := g.Metric("rejections_total", `reason="incomplete_body"`); n != 50 {
		t.Errorf("%v bodies are counted as incomplete", n)
	}
	assertReached(t, u, slow.Event)
	if keys := r.Keys(); len(keys) != 20 {
		t.Errorf("20 genuine events made %d keys", len(keys))
	}
	for _, line := range monitor.Commands(t) {
		if strings.Contains(line, slow.Event) {
			t.Errorf("a body that never came whole reached Redis: %s", line)
		}
	}
	g.Expect(t, slow, "200 first")
}

func TestHostileBytesInBodiesAreExactOrRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	site := route("/pay", "github", "event_id json id", "on_reused_id duplicate") + route("/head", "github") + "reverse_proxy " + u.Addr
	g := harness.StartGateway(t, site, harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	s, head := inBody(t, "id"), harness.NewSender(t, "github")
	refused := map[string]string{
		"the id twice":               `{"id":"a","id":"b"}`,
		"the id twice, equal":        `{"id":"a","id":"a"}`,
		"the id twice, one escaped":  `{"id":"a","\u0069d":"b"}`,
		"the id twice, far apart":    `{"id":"a",` + strings.Repeat(`"x":1,`, 10_000) + `"id":"b"}`,
		"10,000 ids":                 `{` + strings.Repeat(`"id":"a",`, 9_999) + `"id":"a"}`,
		"the id twice, one is null":  `{"id":null,"id":"a"}`,
		"a NUL in the id":            "{\"id\":\"a\x00b\"}",
		"a NUL behind":               "{\"id\":\"a\"}\x00",
		"a NUL in front":             "\x00{\"id\":\"a\"}",
		"a NUL between":              "{\x00\"id\":\"a\"}",
		"a NUL in the name":          `{"id\u0000":"a"}`,
		"a mark in front":            "\xef\xbb\xbf{\"id\":\"a\"}",
		"a mark in the name":         "{\"\xef\xbb\xbfid\":\"a\"}",
		"UTF-16":                     "\xff\xfe{\x00\"\x00i\x00d\x00\"\x00:\x001\x00}\x00",
		"half a surrogate":           `{"id":"\ud800"}`,
		"surrogates in wrong order":  `{"id":"\udc00\ud800"}`,
		"a short escape":             `{"id":"\u00"}`,
		"a raw line end":             "{\"id\":\"a\n\"}",
		"two documents":              `{"id":"a"}{"id":"b"}`,
		"a comment":                  `{"id":"a"/*,"id":"b"*/}`,
		"a comma too many":           `{"id":"a",}`,
		"single quotes":              `{'id':'a'}`,
		"an integer with a plus":     `{"id":+1}`,
		"an integer with zeros":      `{"id":007}`,
		"not a number":               `{"id":NaN}`,
		"hexadecimal":                `{"id":0x10}`,
		"an overlong name of the id": "{\"\xc1\xa9d\":\"a\"}",
	}
	for name, body := range refused {
		d := signedAs(s, harness.Unique("evt"), body)
		if a := g.Send(t, d); a.String() != "400" {
			t.Errorf("%s: the sender got %q", name, a)
		}
		assertReached(t, u, d.Event)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	// Each is an event of its own, exact to the byte, and reaches the upstream so.
	event := harness.Unique("evt")
	bodies := []string{
		`{"id":"a\u0000b"}`, `{"id":"a\u0000c"}`, `{"id":"a"}`, "{\"id\":\"\xff\"}", "{\"id\":\"\xfe\"}", "{\"id\":\"\xef\xbf\xbd\"}",
		"{\"id\":\"\xc0\x80\"}", "{\"id\":\"\xc1\xa1\"}", "{\"id\":\"\xed\xa0\x80\"}", "{\"id\":\"\xf5\xff\"}", "{\"id\":\"a\xff\"}", "{\"id\":\"\xef\xbb\xbfa\"}",
		`{"x":1,"x":2,"id":"beside","y":{"id":"a","id":"b"}}`, "{\"\xff\":\"\xff\",\"id\":\"beside2\",\"\\u0000\":0}",
		`{"id":` + strings.Repeat("9", 5_000) + `}`, `{"id":1` + strings.Repeat("0", 5_000) + `}`, `{"id":-0}`, `{"id":0}`,
	}
	for _, word := range []string{"200 first", "200 duplicate"} {
		for _, body := range bodies {
			if a := g.Send(t, signedAs(s, event, body)); a.String() != word {
				t.Errorf("%.100q: the sender got %q, want %q", body, a, word)
			}
		}
	}
	seen := u.Requests(event)
	if len(seen) != len(bodies) {
		t.Fatalf("%d bodies made %d requests", len(bodies), len(seen))
	}
	for i, body := range bodies {
		if string(seen[i].Body) != body {
			t.Errorf("%.100q reached the upstream as %.100q", body, seen[i].Body)
		}
	}
	r.Do("SET", "canary", "alive")
	assertPlainKeys(t, r, len(bodies))
	// Where the id is a header, the body is the application's own affair.
	for _, body := range refused {
		d := head.WithBody(harness.Unique("evt"), []byte(body)).To("/head")
		g.Expect(t, d, "200 first")
		assertBody(t, u, d)
	}
	assertTameLog(t, g)
}
