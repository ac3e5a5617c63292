package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// FailToSave makes the server unable to save a snapshot, and notice it: from then
// on it refuses writes. What it has it keeps, in its append-only file.
func (r *Redis) FailToSave() {
	r.t.Helper()
	r.Do("CONFIG", "SET", "save", "3600 1")
	snapshot := filepath.Join(r.Dir(), "dump.rdb")
	_ = os.Remove(snapshot)
	if err := os.Mkdir(snapshot, 0o700); err != nil { // no file can take its name
		r.t.Error(err)
	}
	r.Do("BGSAVE", "SCHEDULE")
	r.AwaitInfo("persistence", "rdb_last_bgsave_status:err")
}

// SaveAgain undoes FailToSave.
func (r *Redis) SaveAgain() {
	r.t.Helper()
	r.Do("CONFIG", "SET", "save", "")
	r.AwaitInfo("persistence", "rdb_bgsave_in_progress:0")
	if err := os.Remove(filepath.Join(r.Dir(), "dump.rdb")); err != nil {
		r.t.Error(err)
	}
}

// LoadSlowly has the server begin anew, with so much to load, or so slow a disk,
// that it answers LOADING. Its file must hold a snapshot: over the commands in it
// a server hears nobody.
func (r *Redis) LoadSlowly() {
	r.t.Helper()
	r.Do("EVAL", "for i = 1, 100 do redis.call('SET', 'ballast:' .. i, string.rep('x', 1100)) end return 1", 0)
	r.AwaitInfo("persistence", "aof_rewrite_in_progress:0")
	r.Do("BGREWRITEAOF")
	r.AwaitInfo("persistence", "aof_rewrite_in_progress:0")
	r.Kill()
	r.Launch("--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024")
	Eventually(r.t, "the server loads", func() bool {
		err := r.Client.Ping(context.Background()).Err()
		return err == nil || strings.Contains(err.Error(), "LOADING")
	})
}

// LoadQuickly undoes LoadSlowly, and waits until all is loaded.
func (r *Redis) LoadQuickly() {
	r.t.Helper()
	r.Do("CONFIG", "SET", "key-load-delay", "0")
	Eventually(r.t, "the server has loaded", func() bool { return r.Client.Ping(context.Background()).Err() == nil })
}

// DropOthers closes the connections of all clients but the one that says so, which
// may need a password.
func (r *Redis) DropOthers(password string) {
	r.t.Helper()
	r.As(password, []any{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"})
}

// TakeAllPlaces leaves no place for any client but the test's own, which stays.
func (r *Redis) TakeAllPlaces() {
	r.t.Helper()
	conn := r.Client.Conn()
	defer conn.Close() // it goes back to the client's pool
	for _, args := range [][]any{{"CONFIG", "SET", "maxclients", "1"}, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}} {
		if err := conn.Do(context.Background(), args...).Err(); err != nil {
			r.t.Errorf("%v: %v", args, err)
		}
	}
}

// WantPassword sets a password that none of its clients has.
func (r *Redis) WantPassword() {
	r.t.Helper()
	r.Do("CONFIG", "SET", "requirepass", surprise)
	r.DropOthers(surprise)
}

// WantNoPassword undoes WantPassword.
func (r *Redis) WantNoPassword() {
	r.t.Helper()
	r.As(surprise, []any{"CONFIG", "SET", "requirepass", ""})
}

const surprise = "surprise"

// LeavePlaces undoes TakeAllPlaces.
func (r *Redis) LeavePlaces() {
	r.t.Helper()
	r.Do("CONFIG", "SET", "maxclients", "10000")
}
