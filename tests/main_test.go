// Package tests holds the end-to-end tests: real Caddy processes, real Redis
// servers, real PHP, and everything that can go wrong between them.
package tests

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// route is a webhook_dedupe directive for the paths that begin with path. Where
// lines do not say otherwise it has the tests' secret, a source named after the
// path, and copies do not wait.
func route(path, sender string, lines ...string) string {
	for _, preset := range []string{"source " + strings.Trim(path, "/"), "secret " + harness.Secret, "wait 0s"} {
		word, _, _ := strings.Cut(preset, " ")
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, word+" ") }) {
			lines = append(lines, preset)
		}
	}
	return fmt.Sprintf("webhook_dedupe %s* %s {\n%s\n}\n", path, sender, strings.Join(lines, "\n"))
}

// proxied is a site with one route for paymos at /pay, in front of u.
func proxied(u *harness.Upstream, lines ...string) string {
	return route("/pay", "paymos", lines...) + "reverse_proxy " + u.Addr
}

// assertReached fails the test unless the upstream got exactly these deliveries
// of an event.
func assertReached(t *testing.T, u *harness.Upstream, event string, words ...string) {
	t.Helper()
	if got := u.Words(event); !slices.Equal(got, words) && len(got)+len(words) > 0 {
		t.Fatalf("the upstream got %q of event %s, want %q", got, event, words)
	}
}
