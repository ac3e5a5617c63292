// Package dedupe decides which delivery of an event may reach the upstream.
//
// A sender delivers at least once. [Gate] lets the first delivery of an event
// through, holds copies while it is under way, answers for it once it is done,
// and lets it through again when it failed. What it knows of an event is one
// record in a [Store]:
//
//	absent ──claim──▶ in flight ──complete──▶ done (absorbing, until it expires)
//	                   │  ▲  │
//	           release │  │  │ doubt
//	                   ▼  │  ▼
//	               failed─┘  in doubt ──claim, lease over──▶ in flight
//
// A claim carries a token; renew, release and doubt act only while that token
// owns the record. Complete always acts: done is written only after the
// upstream has accepted the event, so it is true whoever holds the lease. The
// one dangerous lie would be a false done. Everything else a store can lose
// costs a repeat, never an event.
package dedupe
