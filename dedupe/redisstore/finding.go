package redisstore

import "fmt"

// Reason names what a [Finding] is about. The words are stable.
type Reason string

// The reasons.
const (
	// Unreachable: the server does not answer, or is not ready to.
	Unreachable Reason = "unreachable"
	// Permission: it refuses the login, or a command that the store needs.
	Permission Reason = "permission"
	// WritesRefused: it answers, but takes no write: it is full, cannot persist,
	// or lacks replicas.
	WritesRefused Reason = "writes_refused"
	// Replica: it is a replica, and no place to claim events.
	Replica Reason = "replica"
	// Version: it is older than Redis 6.2.
	Version Reason = "version"
	// EvictionPolicy: when full, it drops records instead of refusing writes.
	EvictionPolicy Reason = "eviction_policy"
	// MemoryNearlyFull: more than 90 % of maxmemory are used.
	MemoryNearlyFull Reason = "memory_nearly_full"
	// NoPersistence: a restart loses all events.
	NoPersistence Reason = "no_persistence"
	// Restarted: another run of the server answers than before. It is reported
	// for [NoticeTime].
	Restarted Reason = "restarted"
	// ServerEmpty: all keys are gone that were there at the check before. It is
	// reported for [NoticeTime].
	ServerEmpty Reason = "server_empty"
)

// Reasons returns all of them.
func Reasons() []Reason {
	return []Reason{
		Unreachable, Permission, WritesRefused, Replica, Version, EvictionPolicy,
		MemoryNearlyFull, NoPersistence, Restarted, ServerEmpty,
	}
}

// Finding is something that [Store.Check] does not like.
type Finding struct {
	Reason Reason
	// Node is the server's address, or the name of the master that the sentinels
	// watch.
	Node string
	// Detail is for people. It holds no secret.
	Detail string
}

// String is the finding as a line of text.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Node, f.Reason, f.Detail) }
