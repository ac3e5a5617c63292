package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// reasons are what the findings are about, sorted.
func reasons(found []Finding) string {
	words := make(map[string]bool)
	for _, f := range found {
		words[string(f.Reason)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(words)), " ")
}

func TestCheckReportsWhatEndangersRecords(t *testing.T) {
	t.Parallel()
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	// So much that what else the server needs does not matter. It has no replica,
	// for which it would keep all that once more, for a time.
	server.Do("setrange", "filler", 32<<20, "x")
	near := fmt.Sprint(usedMemory(t, server) / 100 * 105)
	for _, c := range []struct {
		name, want string
		set        []string
	}{
		{"nothing is persisted", "no_persistence", nil},
		{"snapshots", "", []string{"save", "3600 1"}},
		{"append-only file", "", []string{"save", "", "appendonly", "yes"}},
		{"a policy without a limit evicts nothing", "", []string{"maxmemory-policy", "allkeys-lru"}},
		{"a policy with a limit", "eviction_policy", []string{"maxmemory", "10gb"}},
		{"another one", "eviction_policy", []string{"maxmemory-policy", "volatile-ttl"}},
		{"a limit", "", []string{"maxmemory-policy", "noeviction"}},
		{"a limit that is near", "memory_nearly_full", []string{"maxmemory", near}},
		{"full", "memory_nearly_full writes_refused", []string{"maxmemory", "1mb"}},
		{"no replicas", "writes_refused", []string{"maxmemory", "0", "min-replicas-to-write", "2"}},
	} {
		for i := 0; i < len(c.set); i += 2 {
			server.Do("config", "set", c.set[i], c.set[i+1])
		}
		if got := reasons(check(t, s)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheckReportsAReplica(t *testing.T) {
	t.Parallel()
	server := harness.StartRedis(t, "--repl-diskless-sync-delay", "0")
	replica := harness.StartRedis(t, "--save", "3600 1", "--replicaof", "127.0.0.1 "+server.Port())
	replica.AwaitInfo("replication", "master_link_status:up")
	if got := reasons(check(t, openAt(t, replica.Addr))); got != "replica" {
		t.Errorf("found %q", got)
	}
}

func TestCheckLeavesNothingBehindAndDisturbsNoEvent(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	claim(t, s, "a:1", "own")
	before := server.Do("get", "webhook_dedupe:a:1")
	for range 3 {
		check(t, s)
	}
	advance(server, 2*probeTime)
	if keys := server.Do("keys", "*"); fmt.Sprint(keys) != "[webhook_dedupe:a:1]" {
		t.Errorf("the server holds %v", keys)
	}
	if after := server.Do("get", "webhook_dedupe:a:1"); after != before {
		t.Errorf("the event went from %v to %v", before, after)
	}
}

func TestCheckNoticesARestartAndAnEmptiedServer(t *testing.T) {
	server := harness.StartRedis(t)
	s := openAt(t, server.Addr)
	for i := range 100 {
		if err := s.Complete(context.Background(), fmt.Sprintf("a:%d", i), dedupe.Done{TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if got := reasons(check(t, s)); got != "no_persistence" {
		t.Errorf("at first: %q", got)
	}
	server.Kill()
	if got := reasons(check(t, s)); got != "unreachable" {
		t.Errorf("while it is away: %q", got)
	}
	server.Start()
	eventually(t, "the restart is noticed", func() error {
		if got := reasons(check(t, s)); got != "no_persistence restarted server_empty" {
			return errors.New(got)
		}
		return nil
	})
	for i := range s.history.events {
		s.history.events[i].at = s.history.events[i].at.Add(-NoticeTime)
	}
	if got := reasons(check(t, s)); got != "no_persistence" {
		t.Errorf("after a while: %q", got)
	}
}

func TestCheckOfAServerThatServesNobodySaysUnreachable(t *testing.T) {
	for _, wording := range []string{"LOADING Redis is loading the dataset in memory", "ERR max number of clients reached"} {
		s := openAt(t, startStub(t, func([]string) string { return "-" + wording }))
		if f := find(t, check(t, s), Unreachable); !strings.Contains(f.Detail, wording) {
			t.Errorf("%v does not say %q", f, wording)
		}
	}
	server := harness.StartRedis(t)
	server.Freeze()
	s := open(t, Options{Addresses: []string{server.Addr}, Timeout: 100 * time.Millisecond})
	if got := reasons(check(t, s)); got != "unreachable" {
		t.Errorf("a frozen server: %q", got)
	}
}

func TestLoginThatIsRefusedIsAMatterOfPermission(t *testing.T) {
	server := harness.StartRedis(t, "--requirepass", "right-one")
	for _, password := range []string{"", "wrong-one"} {
		s := open(t, Options{Addresses: []string{server.Addr}, Password: password})
		if f := find(t, check(t, s), Permission); strings.Contains(f.Detail, "-one") {
			t.Errorf("%v shows the password", f)
		}
	}
}

func TestFieldsOfInfoAreJudged(t *testing.T) {
	const snapshots = "aof_enabled:0\nserver_time_usec:1000000000000\nrdb_changes_since_last_save:5\n"
	for text, want := range map[string]string{
		"redis_version:6.0.16":                                            "version",
		"redis_version:5.0.1":                                             "version",
		"redis_version:6.2.0":                                             "",
		"redis_version:7.2.4\nvalkey_version:8.1.0":                       "",
		"redis_version:unknown":                                           "",
		"role:slave\nmaster_host:h\nmaster_port:1":                        "replica",
		"maxmemory:100\nused_memory:90\nmaxmemory_policy:noeviction":      "",
		"maxmemory:100\nused_memory:91\nmaxmemory_policy:noeviction":      "memory_nearly_full",
		"maxmemory:0\nused_memory:91\nmaxmemory_policy:allkeys-lfu":       "",
		"maxmemory:1000\nmaxmemory_policy:volatile-lru":                   "eviction_policy",
		snapshots + "uptime_in_seconds:9000\nrdb_last_save_time:991001":   "no_persistence",
		snapshots + "uptime_in_seconds:9000\nrdb_last_save_time:995000":   "",
		snapshots + "uptime_in_seconds:600\nrdb_last_save_time:999400":    "",
		"aof_enabled:1\nuptime_in_seconds:9000\nrdb_last_save_time:1":     "",
		"role:master\nnonsense\n# Heading\nmaxmemory:x\nused_memory:many": "",
	} {
		i := parseInfo(strings.ReplaceAll(text, "\n", "\r\n"))
		found := i.judge()
		if i.unsaved() {
			found = append(found, Finding{Reason: NoPersistence})
		}
		if got := reasons(found); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	if n := parseInfo("db0:keys=5,expires=1\r\ndb1:keys=7,expires=0\r\n").keys(1); n != 7 {
		t.Errorf("counted %d keys", n)
	}
}

func TestHistoryTellsAFailoverFromAFirstSight(t *testing.T) {
	var h history
	now := time.Now()
	for _, step := range []struct {
		node, run string
		keys      int64
		want      string
	}{
		{"a", "1", 50, ""},
		{"b", "2", 5, ""},
		{"begin", "", 0, ""},
		{"a", "1", 1, ""},
		{"b", "2", 0, ""}, // few keys may expire
		{"b", "3", 20, "restarted"},
		{"c", "4", 0, "restarted"},
		{"b", "3", 0, "restarted server_empty"},
		{"a", "1", 0, ""},
	} {
		if step.node == "begin" {
			h.begin()
		} else if got := reasons(h.note(step.node, sighting{step.run, step.keys}, now)); got != step.want {
			t.Errorf("%v: found %q", step, got)
		}
	}
}

func TestClosedStoreIsNotChecked(t *testing.T) {
	s := openAt(t, "127.0.0.1:1")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is called off: %v", err)
	}
	s.Close()
	if _, err := s.Check(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
