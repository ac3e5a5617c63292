package caddymodule

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// encoded is a text in a content coding.
func encoded(t testing.TB, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, err = flate.NewWriter(&b, flate.BestCompression)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	default:
		return []byte(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// acceptedOnly is a route whose successes begin with [accepted].
var acceptedOnly = strings.Replace(stripeRoute, "source", "success body_prefix [accepted]\nmax_response 2KiB\nsource", 1)

func TestSuccessBeginsWithItsText(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	const ok, refused = true, false
	for name, c := range map[string]struct {
		status       int
		coding, body string
		accepted     bool
	}{
		"the text":                {200, "", "[accepted]", ok},
		"more text":               {201, "", "[accepted] 7 items", ok},
		"a long answer":           {200, "", "[accepted]" + long, ok},
		"another text":            {200, "", "<br />\n<b>Fatal error</b>", refused},
		"a long one":              {200, "", "<br />" + long, refused},
		"JSON":                    {200, "", `{"ok":false}`, refused},
		"a part of the text":      {200, "", "[accept", refused},
		"not at the beginning":    {200, "", " [accepted]", refused},
		"a mark in front":         {200, "", "\ufeff[accepted]", refused},
		"another case":            {200, "", "[ACCEPTED]", refused},
		"nothing":                 {200, "", "", refused},
		"no content":              {204, "", "", refused},
		"no content, with some":   {204, "", "[accepted]", refused},
		"a redirect":              {302, "", "[accepted]", refused},
		"gzip":                    {200, "gzip", "[accepted]", ok},
		"an old name of gzip":     {200, "x-gzip", "[accepted]", ok},
		"deflate":                 {200, "deflate", "[accepted] and", ok},
		"raw deflate":             {200, "raw deflate", "[accepted]", ok},
		"zstd":                    {200, "zstd", "[accepted]", ok},
		"gzip of another text":    {200, "gzip", "[refused]" + long, refused},
		"gzip that is none":       {200, "not gzip", "[accepted]", refused},
		"a coding nobody knows":   {200, "br", "[accepted]", refused},
		"two codings":             {200, "gzip, gzip", "[accepted]", refused},
		"a coding that is none":   {200, "identity", "[accepted]", ok},
		"a failure with the text": {500, "", "[accepted]", refused},
	} {
		body := encoded(t, c.coding, c.body)
		g := newGateway(t, acceptedOnly, func(w http.ResponseWriter, _ *http.Request) error {
			switch c.coding {
			case "":
			case "not gzip":
				w.Header().Set("Content-Encoding", "gzip")
			default:
				w.Header().Set("Content-Encoding", strings.TrimPrefix(c.coding, "raw "))
			}
			w.WriteHeader(c.status)
			for _, part := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
				_, _ = w.Write(part)
			}
			return nil
		})
		resp := g.send("stripe", "evt_1")
		got, _ := io.ReadAll(resp.Body)
		again := g.send("stripe", "evt_1")
		switch {
		case c.accepted && (resp.StatusCode != c.status || !bytes.Equal(got, body) || again.Header.Get(resultHeader) != "duplicate"):
			t.Errorf("%s: got %d %.40q, then %s", name, resp.StatusCode, got, again.Header.Get(resultHeader))
		case !c.accepted && again.Header.Get(resultHeader) != "retry":
			t.Errorf("%s: the next attempt is %s", name, again.Header.Get(resultHeader))
		case !c.accepted && c.status < 400 && (resp.StatusCode != 502 || len(got) > 0 || resp.Header.Get("Retry-After") != "1"):
			t.Errorf("%s: got %d %q", name, resp.StatusCode, got)
		case !c.accepted && c.status >= 400 && (resp.StatusCode != c.status || string(got) != c.body):
			t.Errorf("%s: got %d %q", name, resp.StatusCode, got)
		}
		if line := g.logs.String(); strings.Contains(line, "Fatal") {
			t.Errorf("%s: the body is in the log: %s", name, line)
		}
	}
}

func TestStatusAndTextMustBothBeThoseOfASuccess(t *testing.T) {
	site := strings.Replace(stripeRoute, "source", "success 202 body_prefix ok\nsource", 1)
	for answered, want := range map[int]int{200: 502, 202: 202} {
		var calls atomic.Int64
		g := newGateway(t, site, answering(&calls, answered, "ok"))
		if resp := g.send("stripe", "evt_1"); resp.StatusCode != want {
			t.Errorf("%d became %d", answered, resp.StatusCode)
		}
	}
}

func TestHeadNeverHasTheTextOfASuccess(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, handshakeRoute("none", "methods HEAD", "success body_prefix ok"), answering(&calls, 200, "ok"))
	delivery := greeting{method: http.MethodHead, signed: true, header: "X-Id: 1"}
	expect(t, g.do(delivery.request()), 502, "first")
}

func TestTextOfASuccessIsSeenInWritesOfAnySize(t *testing.T) {
	const prefix = "[accepted]"
	for _, limit := range []int64{int64(len(prefix)), 12, 1000} {
		for _, text := range []string{"[accepted]", "[accepted]x", "[accepted]" + strings.Repeat("x", 20), "[accepted", "[accepteD]", "[accepteD]" + strings.Repeat("x", 20)} {
			for step := 1; step <= len(text); step++ {
				rec, _, _ := recording("POST", limit, true, true)
				rec.prefix = prefix
				for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
					_, _ = rec.Write([]byte(rest[:min(step, len(rest))]))
				}
				if a := rec.answer(); a.wrong == strings.HasPrefix(text, prefix) {
					t.Errorf("limit %d, %q in steps of %d: got %+v", limit, text, step, a)
				}
			}
		}
	}
}

func TestLateAnswerResolvesTheDoubtOnlyWithTheTextOfASuccess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]dedupe.Outcome{
		"[ok]":                  dedupe.OutcomeAccepted,
		"[ok] and more than 10": dedupe.OutcomeAccepted,
		"[no]":                  dedupe.OutcomeRefused,
		"[no] and more than 10": dedupe.OutcomeRefused,
	} {
		goOn := make(chan struct{})
		c := newCall(time.Millisecond, 10, func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, text[:2]) // before it is given up, and after
			<-goOn
			_, err := io.WriteString(w, text[2:])
			return err
		})
		c.rec.prefix = "[ok]"
		if res := c.run(); res.status != http.StatusGatewayTimeout {
			t.Errorf("%s: got %+v", text, res)
		}
		close(goOn)
		receive(t, c.ended, "finally")
		c.expectOutcomes(t, dedupe.OutcomeUnanswered, want)
		if c.sender.Body.Len() > 0 {
			t.Errorf("the sender got %q", c.sender.Body)
		}
	}
}

func TestDryRunLooksForTheTextOfASuccess(t *testing.T) {
	site := strings.Replace(acceptedOnly, "source", "dry_run\nsource", 1)
	for text, want := range map[string]string{"[accepted]": "duplicate", "[accepted]" + strings.Repeat("x", 5000): "duplicate", "sorry": "retry"} {
		for how, write := range map[string]func(http.ResponseWriter) error{
			"written": func(w http.ResponseWriter) error { _, err := io.WriteString(w, text); return err },
			"copied": func(w http.ResponseWriter) error {
				_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(text)})
				return err
			},
		} {
			g := newGateway(t, site, func(w http.ResponseWriter, _ *http.Request) error { return write(w) })
			for _, result := range []string{"first", want} {
				resp := g.send("stripe", "evt_1")
				body, _ := io.ReadAll(resp.Body)
				expect(t, resp, 200, result)
				if string(body) != text {
					t.Errorf("%s: the sender got %q", how, body)
				}
			}
		}
	}
}

func TestObserverWithoutATextHoldsNothing(t *testing.T) {
	o := &observer{}
	o.ResponseWriter = httptest.NewRecorder()
	_, _ = o.Write([]byte("x"))
	if len(o.body) > 0 || o.lacks("", "POST") {
		t.Errorf("it holds %q", o.body)
	}
}
