package dedupe

import (
	"context"
	"errors"
	"time"
)

// Store keeps one record per event and decides, in one atomic step each, who
// owns it. Every method is safe for concurrent use and safe to repeat: a
// caller whose reply was lost asks again and gets the answer it missed.
//
// An error means that the outcome is unknown, never that the event is a
// duplicate. The lease is judged by the store's own clock: gateways only say
// how long one lasts. Each state lives Hold.TTL (or Done.TTL) from its last
// write, then the record is gone as if the event had never been seen.
//
// Keys are built by [Key] and are unique to an event; a store must tell two
// different keys apart and need not be able to list them.
type Store interface {
	// Claim makes h.Token the owner of the event, if the event is free for it,
	// and returns the record as it is after the call.
	//
	// The event is free if there is no record, if the last try failed, or if
	// the record is in flight or in doubt, its lease is over and takeover is
	// set. The caller owns it if, and only if, the returned state is InFlight
	// and the returned token is h.Token; repeating a claim with one's own token
	// says so again and changes nothing but the lease. h.Attempt and h.Doubted
	// are not read: the record's own, returned, count.
	//
	// A new owner's Attempt is one more than the record's. Doubted is sticky: it
	// is set by taking over a lapsed lease and stays through every later state
	// but Done.
	Claim(ctx context.Context, key string, h Hold, takeover bool) (Record, error)

	// Renew starts h's lease and time to live afresh and reports whether h.Token
	// still owns the event. An absent record is put back as h describes it, a
	// lapsed one that nobody took is revived. It is false, and changes nothing,
	// when the record is somebody else's, or no longer in flight.
	Renew(ctx context.Context, key string, h Hold) (bool, error)

	// Complete makes the event done, whatever its record says: the caller has
	// seen the upstream accept it. Done is absorbing; completing a done event
	// again leaves it done, and may start its time to live afresh.
	Complete(ctx context.Context, key string, d Done) error

	// Release ends h's claim as failed, so that the next attempt may go at once.
	// It does nothing if h.Token does not own the event (any more). An absent
	// record is put back as failed only if h.Doubted, so that the doubt is not
	// forgotten.
	Release(ctx context.Context, key string, h Hold) error

	// Doubt ends h's claim as in doubt and restarts a full lease. It does
	// nothing if the record is somebody else's, failed, or done; an absent record
	// is put back as in doubt.
	Doubt(ctx context.Context, key string, h Hold) error

	// Lookup returns the record without changing it. The zero Record is one that
	// does not exist.
	Lookup(ctx context.Context, key string) (Record, error)

	// Bind ties value to key, unless another value is tied to it already, and
	// returns the value that is. The binding ends ttl after it was made; binding
	// again does not extend it. Bindings and events have separate key spaces.
	// Values are at most 32 bytes.
	Bind(ctx context.Context, key, value string, ttl time.Duration) (string, error)

	// Close gives the store's resources back. No method may be called after it.
	Close() error
}

// State is what a record says of its event.
type State uint8

// The states of a record.
const (
	// Absent: never seen, or expired.
	Absent State = iota
	// InFlight: an owner is delivering it, or died while it did.
	InFlight
	// InDoubt: the request went out and no complete answer came back.
	InDoubt
	// Failed: the upstream refused it or was never reached.
	Failed
	// Completed: the upstream accepted it. Absorbing.
	Completed
)

var stateNames = [...]string{"absent", "in-flight", "in-doubt", "failed", "done"}

// String returns the state's name: absent, in-flight, in-doubt, failed or done.
func (s State) String() string { return stateNames[s] }

// Record is what a store knows of an event.
type Record struct {
	State State
	// Token is the owner's, when the event is InFlight or InDoubt.
	Token string
	// Attempt counts the claims so far, from 1. It is 0 when Absent or Completed.
	Attempt int
	// Doubted says that an earlier try, or this one, may have reached the
	// upstream without an answer.
	Doubted bool
	// LeaseLeft is how long the lease still runs: 0 when it is over, or when the
	// state has none.
	LeaseLeft time.Duration
	// Left is how long the record still lives.
	Left time.Duration
	// Mark is the Done.Mark of a Completed event.
	Mark uint16
}

// OwnedBy reports whether token owns the event.
func (r Record) OwnedBy(token string) bool {
	return r.State == InFlight && r.Token == token
}

// Hold is an owner's side of its claim: all that is needed to renew it, to end
// it, or to write it anew into a store that lost it.
type Hold struct {
	// Token is unique to one claim in all processes: at most 32 bytes out of
	// [A-Za-z0-9_-].
	Token string
	// Attempt and Doubted are the record's, as Claim returned them.
	Attempt int
	Doubted bool
	// Lease is how long the claim holds without being renewed. At least 1s.
	Lease time.Duration
	// TTL is how long the record lives after its last write.
	TTL time.Duration
}

// Done is what is kept of a finished event.
type Done struct {
	// Mark is a small fingerprint of the body (0 to [MaxMark]), enough to notice
	// that an id came again with another body.
	Mark uint16
	// TTL is how long the event is remembered.
	TTL time.Duration
}

// MaxMark is the largest Done.Mark. It keeps a finished event's value in Redis
// among the integers that Redis shares instead of allocating.
const MaxMark = 9999

// ErrCorrupt says that a record cannot be read: it was not written by this
// package, or is damaged. The event is neither free nor done.
var ErrCorrupt = errors.New("the store holds a record that this gateway did not write")
