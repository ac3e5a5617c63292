package redisstore

import (
	"slices"
	"testing"
)

// FuzzInfo: whatever a server says of itself, judging it ends, and it is called a
// replica exactly if it says so.
func FuzzInfo(f *testing.F) {
	f.Add("role:master\r\nredis_version:7.0.15\r\ndb0:keys=3,expires=3\r\n")
	f.Add("role:slave\r\nmaster_host:\r\nmaster_port:x\r\nredis_version:5")
	f.Add("maxmemory:10\nused_memory:99999999999999999999\nmaxmemory_policy:allkeys-lru")
	f.Add("aof_enabled:0\nuptime_in_seconds:7201\nrdb_changes_since_last_save:1\nserver_time_usec:-1\nrdb_last_save_time:0")
	f.Add("::\n:\nrole")
	f.Fuzz(func(t *testing.T, text string) {
		i := parseInfo(text)
		found := i.judge()
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Reason == Replica }) != (i["role"] == "slave") {
			t.Errorf("role %q: found %v", i["role"], found)
		}
		i.unsaved()
		i.keys(0)
	})
}
