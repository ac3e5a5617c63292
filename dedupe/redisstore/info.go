package redisstore

import (
	"fmt"
	"strconv"
	"strings"
)

// info is what a server answered to INFO: its fields by their names.
type info map[string]string

func parseInfo(text string) info {
	fields := make(info)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number is a field as a number; 0 if there is none.
func (i info) number(field string) int64 {
	n, err := strconv.ParseInt(i[field], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// keys counts the keys of a database.
func (i info) keys(db int) int64 {
	value := strings.TrimPrefix(i["db"+strconv.Itoa(db)], "keys=")
	count, _, _ := strings.Cut(value, ",")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0 // an empty database is not listed
	}
	return n
}

// The oldest version that will do. Valkey says redis_version as well.
const oldestMajor, oldestMinor = 6, 2

// outdated reports whether the version is known and too old.
func (i info) outdated() bool {
	var major, minor int
	if n, _ := fmt.Sscanf(i["redis_version"], "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major < oldestMajor || major == oldestMajor && minor < oldestMinor
}

// judge returns what the fields alone tell.
func (i info) judge() []Finding {
	var found []Finding
	report := func(is bool, reason Reason, format string, args ...any) {
		if is {
			found = append(found, Finding{Reason: reason, Detail: fmt.Sprintf(format, args...)})
		}
	}
	report(i["role"] == "slave", Replica, "it is a replica of %s:%s", i["master_host"], i["master_port"])
	report(i.outdated(), Version, "it is version %s; at least %d.%d is needed", i["redis_version"], oldestMajor, oldestMinor)
	limit, used, policy := i.number("maxmemory"), i.number("used_memory"), i["maxmemory_policy"]
	report(limit > 0 && policy != "" && policy != "noeviction", EvictionPolicy,
		"maxmemory-policy is %s: a full server drops finished events without a word; set noeviction", policy)
	report(limit > 0 && used > limit/10*9, MemoryNearlyFull, "%d of %d bytes (maxmemory) are used", used, limit)
	return found
}

// snapshotWait is how long a server that makes snapshots may take for the first
// one: the default of Redis is an hour after one write. In seconds.
const snapshotWait = 2 * 60 * 60

// unsaved judges the persistence of a server that does not show its save
// points, by what it has done: nothing since it was started, though there was
// something to save. Before snapshotWait it says nothing.
func (i info) unsaved() bool {
	_, tells := i["aof_enabled"]
	uptime := i.number("uptime_in_seconds")
	if !tells || i.number("aof_enabled") == 1 || uptime < snapshotWait || i.number("rdb_changes_since_last_save") == 0 {
		return false
	}
	// Until the first snapshot, the time of the last is that of the start.
	started := i.number("server_time_usec")/1e6 - uptime
	return i.number("rdb_last_save_time") <= started+startTime
}

// startTime is how long a start may take, in seconds: the time of the last
// snapshot is set somewhere in it.
const startTime = 60
