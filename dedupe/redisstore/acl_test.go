package redisstore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/storetest"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// rights is the documented ACL of the gateway's user.
const rights = "testdata/gateway.acl"

// asGateway are the options of that user.
func asGateway(o Options) Options {
	o.Username, o.Password = "gateway", "secret"
	return o
}

// guarded returns the arguments of a server with the documented ACL, less some
// of its rights.
func guarded(t *testing.T, without ...string) []string {
	t.Helper()
	text, err := os.ReadFile(rights)
	if err != nil {
		t.Fatal(err)
	}
	words := slices.DeleteFunc(strings.Fields(string(text)), func(w string) bool { return slices.Contains(without, w) })
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(strings.Join(words, " ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--aclfile", file}
}

// TestReadmeGrantsTheseRights: the README's command and the file of these tests
// say the same.
func TestReadmeGrantsTheseRights(t *testing.T) {
	text, err := os.ReadFile(rights)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rule, _ := strings.CutPrefix(strings.TrimSpace(string(text)), "user ")
	command := "ACL SETUSER " + strings.Replace(rule, ">secret", ">password", 1)
	if !strings.Contains(string(readme), "  "+command+"\n") {
		t.Errorf("the README does not say %q", command)
	}
}

// refusals are what the server refused the gateway, save its configuration.
func refusals(s *harness.Redis) []string {
	var objects []string
	for _, entry := range s.Do("acl", "log").([]any) {
		fields := entry.(map[any]any)
		if object := fields["object"].(string); !strings.HasPrefix(object, "config") {
			objects = append(objects, object)
		}
	}
	return objects
}

func TestStoreKeepsTheContractWithTheDocumentedRights(t *testing.T) {
	server := harness.StartRedis(t, guarded(t)...)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.Do("flushall")
		s := open(t, asGateway(Options{Addresses: []string{server.Addr}}))
		return storetest.Harness{Store: s, Advance: func(d time.Duration) { advance(server, d) }}
	})
	s := open(t, asGateway(Options{Addresses: []string{server.Addr}}))
	if got := check(t, s); len(got) > 0 {
		t.Errorf("the check says %v", got)
	}
	if got := refusals(server); len(got) > 0 {
		t.Errorf("the server refused %v", got)
	}
}

func TestEveryMissingRightIsFound(t *testing.T) {
	for _, right := range []string{"+set", "+get", "+pttl", "+eval", "+evalsha", "+info", "~webhook_dedupe:*", "~webhook_dedupe!*", ">secret"} {
		server := harness.StartRedis(t, guarded(t, right)...)
		s := open(t, asGateway(Options{Addresses: []string{server.Addr}}))
		found := check(t, s)
		f := find(t, found, Permission)
		if len(found) != 1 {
			t.Errorf("without %s: found %v", right, found)
		}
		if command, ok := strings.CutPrefix(right, "+"); ok && !strings.Contains(strings.ToLower(f.Detail), command+":") {
			t.Errorf("without %s: %v does not name the command", right, f)
		}
		if strings.Contains(f.Detail, "secret") {
			t.Errorf("%v shows the password", f)
		}
	}
}

// The rights are in the ACL of a cluster as well, with a slot under way.
func TestClusterNeedsNoRightsButTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 0, guarded(t)...)
	s := open(t, asGateway(Options{Addresses: []string{c[0].Addr}, Cluster: true}))
	checkLife(t, s)
	if got := check(t, s); len(got) > 0 {
		t.Errorf("the check says %v", got)
	}
	key := keysOf(s, c, 0, 1)[0]
	migrateSlot(s, key, c[0], c[1])
	for step, do := range operations(s, key) {
		if step == "ping" {
			continue
		}
		if _, err := do(); err != nil {
			t.Errorf("%s during a migration: %v", step, err)
		}
	}
	for _, node := range c {
		if got := refusals(node); len(got) > 0 {
			t.Errorf("a node refused %v", got)
		}
	}
}

// find returns the one finding of a reason.
func find(t *testing.T, found []Finding, reason Reason) Finding {
	t.Helper()
	for _, f := range found {
		if f.Reason == reason {
			return f
		}
	}
	t.Errorf("no %s in %v", reason, found)
	return Finding{}
}

// check runs a check of a store.
func check(t *testing.T, s *Store) []Finding {
	t.Helper()
	found, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return found
}
