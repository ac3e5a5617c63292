// Package redisstore keeps events in Redis or Valkey: one server, Sentinel, or
// Cluster. Any server since Redis 6.2 will do.
//
// An event is one string, <prefix>:<key>; a binding is one, <prefix>!<key>. A
// key holds no braces, so that events spread over all hash slots of a cluster.
// A done event is its mark as a plain integer, which Redis shares instead of
// allocating; every other state is a short line of text (see encode). Each key
// carries its own time to live, and the age of a lease is that time as it was
// written less what is left of it: Redis's clock decides, never a gateway's.
//
// The common steps need no script and one round trip; concurrent ones share it
// (see combiner). What has to compare before it writes is a Lua script.
package redisstore
