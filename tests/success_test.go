package tests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// An application of the old kind, that says what became of an event in its
// answer's body and always answers 200.
func TestErrorPageWithStatus200IsNoSuccess(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "success 200 body_prefix [accepted]", `duplicate 200 "[accepted]"`, "max_response 1KiB"))
	s := harness.NewSender(t, "paymos")
	long := strings.Repeat("x", 100_000)
	for name, failure := range map[string]harness.Behaviour{
		"a fatal error":        harness.Reply(200, "text/html", "<br />\n<b>Fatal error</b>"),
		"a long one":           harness.Reply(200, "text/html", "<br />\n<b>Fatal error</b>"+long),
		"an error as JSON":     harness.Reply(200, "application/json", `{"ok":false}`),
		"nothing":              harness.Reply(200, "text/plain", ""),
		"a status without any": harness.Status(204),
	} {
		d := s.Event(harness.Unique("evt"))
		u.On(d.Event, failure, harness.Reply(200, "text/plain", "[accepted]"))
		if a := g.Expect(t, d, "502 first"); a.Body != "" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: the sender got %q, %v", name, a.Body, a.Header)
		}
		for _, want := range []string{"200 retry", "200 duplicate"} {
			if a := g.Expect(t, d, want); a.Body != "[accepted]" {
				t.Errorf("%s: the sender got %q", name, a.Body)
			}
		}
		assertReached(t, u, d.Event, "first", "retry")
	}
	d := s.Event(harness.Unique("evt"))
	u.On(d.Event, harness.Reply(200, "text/plain", "[accepted]"+long))
	if a := g.Expect(t, d, "200 first"); a.Body != "[accepted]"+long {
		t.Errorf("the sender got %d bytes", len(a.Body))
	}
	g.Expect(t, d, "200 duplicate")
}

func TestCompressedAnswerIsRecognised(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, "encode gzip zstd {\nminimum_length 1\n}\n"+proxied(u, "success body_prefix [accepted]"))
	for _, coding := range []string{"gzip", "zstd"} {
		for answer, want := range map[string]string{"[accepted]": "200 first", "Fatal error": "502 first"} {
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt")).With("Accept-Encoding", coding)
			u.On(d.Event, harness.Reply(200, "text/plain", answer))
			a := g.Expect(t, d, want)
			if got := a.Header.Get("Content-Encoding"); a.Status == http.StatusOK && got != coding {
				t.Errorf("%s: it came as %q", fmt.Sprint(coding, " ", answer), got)
			}
		}
	}
}
