package faults

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// failToSave makes the server unable to save a snapshot, and notice it: from then
// on it refuses writes. What it has it keeps, in its append-only file.
func failToSave(t testing.TB, r *harness.Redis) {
	t.Helper()
	r.Do("CONFIG", "SET", "save", "3600 1")
	snapshot := filepath.Join(r.Dir(), "dump.rdb")
	_ = os.Remove(snapshot)
	if err := os.Mkdir(snapshot, 0o700); err != nil { // no file can take its name
		t.Error(err)
	}
	r.Do("BGSAVE", "SCHEDULE")
	r.AwaitInfo("persistence", "rdb_last_bgsave_status:err")
}

func saveAgain(t testing.TB, r *harness.Redis) {
	t.Helper()
	r.Do("CONFIG", "SET", "save", "")
	r.AwaitInfo("persistence", "rdb_bgsave_in_progress:0")
	if err := os.Remove(filepath.Join(r.Dir(), "dump.rdb")); err != nil {
		t.Error(err)
	}
}

// loadSlowly has the server begin anew, with so much to load, or so slow a disk,
// that it answers LOADING. Its file must hold a snapshot: over the commands in it
// a server hears nobody.
func loadSlowly(t testing.TB, r *harness.Redis) {
	t.Helper()
	r.Do("EVAL", "for i = 1, 100 do redis.call('SET', 'ballast:' .. i, string.rep('x', 1100)) end return 1", 0)
	r.AwaitInfo("persistence", "aof_rewrite_in_progress:0")
	r.Do("BGREWRITEAOF")
	r.AwaitInfo("persistence", "aof_rewrite_in_progress:0")
	r.Kill()
	r.Launch("--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
	harness.Eventually(t, "the server loads", func() bool {
		err := r.Client.Ping(context.Background()).Err()
		return err == nil || strings.Contains(err.Error(), "LOADING")
	})
}

func loadQuickly(t testing.TB, r *harness.Redis) {
	t.Helper()
	r.Do("CONFIG", "SET", "key-load-delay", "0")
	harness.Eventually(t, "the server has loaded", func() bool { return r.Client.Ping(context.Background()).Err() == nil })
}

// dropOthers closes the connections of all clients but the one that says so.
func dropOthers(t testing.TB, r *harness.Redis, password string) {
	t.Helper()
	r.As(password, []any{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"})
}

// takeAllPlaces leaves no place for any client but the test's own, which stays.
func takeAllPlaces(t testing.TB, r *harness.Redis) {
	t.Helper()
	conn := r.Client.Conn()
	defer conn.Close() // it goes back to the client's pool
	for _, args := range [][]any{{"CONFIG", "SET", "maxclients", "1"}, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}} {
		if err := conn.Do(context.Background(), args...).Err(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}
