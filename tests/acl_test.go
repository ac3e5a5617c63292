package tests

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// documentedRights is the README's command that gives a Redis user what the
// gateway needs.
func documentedRights(t *testing.T) (command []any) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(readme)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "ACL SETUSER gateway ") {
			for _, word := range strings.Fields(line) {
				command = append(command, word)
			}
			return command
		}
	}
	t.Fatal("the README has no command ACL SETUSER gateway")
	return nil
}

// TestDocumentedRightsSuffice takes events through all that can happen to them.
func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	r.Do(documentedRights(t)...)
	site := proxied(u, "lease 1s", "upstream_timeout 1s") + "\n" + route("/ids", "stableops")
	g := harness.StartGateway(t, site, harness.WithRedis(r.Addr, "username gateway", "password password"))
	s := harness.NewSender(t, "paymos")

	failed := s.Event(harness.Unique("evt"))
	u.On(failed.Event, harness.Status(500), harness.Status(200))
	g.Expect(t, failed, "500 first")
	g.Expect(t, failed, "200 retry")
	g.Expect(t, failed, "200 duplicate")

	doubted := s.Event(harness.Unique("evt"))
	u.On(doubted.Event, harness.Hang(), harness.Status(200)) // its lease is renewed
	g.Expect(t, doubted, "504 first")
	g.RetryUntil(t, doubted, "200 possible-repeat", "503 in-flight")
	g.Expect(t, doubted, "200 duplicate")

	guarded := harness.NewSender(t, "stableops").Event(harness.Unique("evt")).To("/ids")
	g.Expect(t, guarded, "200 first")
	g.Expect(t, guarded, "200 duplicate")
	g.Expect(t, guarded.With("X-Event-Id", harness.Unique("stolen")), "503")

	harness.Eventually(t, "the server was checked", func() bool { return g.Metric("store_up") == 1 })
	if n := g.Metric("store_findings", `reason="permission"`); n != 0 {
		t.Error("the gateway misses a permission")
	}
	for _, entry := range r.Do("ACL", "LOG").([]any) {
		fields := entry.(map[any]any)
		// Whether Redis persists can be seen without it, if later.
		if fields["object"] != "config|get" {
			t.Errorf("Redis refused %s", fmt.Sprint(fields["reason"], " ", fields["object"]))
		}
	}
}
