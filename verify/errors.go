package verify

import (
	"errors"
	"time"
)

// The kinds of refusal. Test for them with errors.Is.
var (
	// ErrUnsigned: no signature, or none that could be one, or no single
	// timestamp to check it with.
	ErrUnsigned = &Error{Reason: "unsigned"}
	// ErrForged: there are signatures, and none of them matches.
	ErrForged = &Error{Reason: "forged"}
	// ErrStale: the signature is right, its time is outside the tolerance or
	// cannot be read.
	ErrStale = &Error{Reason: "stale"}
	// ErrNoKeys: the keys to check the delivery with are not at hand for the
	// moment. It may be genuine: it must neither pass nor be taken for forged.
	ErrNoKeys = &Error{Reason: "keys"}
	// ErrMissingID: there is no event id, or a blank one.
	ErrMissingID = &Error{Reason: "missing_id"}
	// ErrAmbiguousID: the place of the event id holds different values.
	ErrAmbiguousID = &Error{Reason: "ambiguous_id"}
	// ErrBadID: what stands at the place of the event id cannot be one.
	ErrBadID = &Error{Reason: "bad_id"}
)

// Error is why a delivery was refused. Its text holds no secret, no signature
// and nothing of the body.
type Error struct {
	// Reason is a stable word: unsigned, forged, stale, keys, missing_id,
	// ambiguous_id or bad_id.
	Reason string
	// Detail says more, for people.
	Detail string
	// Age is how old the signed timestamp is, negative if it lies in the future.
	// Only with reason stale; zero where the timestamp could not be read.
	Age time.Duration
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Detail
}

// Is makes errors.Is match on the reason alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// because returns an error of the same kind with a detail.
func (e *Error) because(detail string) *Error {
	return &Error{Reason: e.Reason, Detail: detail}
}

// Reason returns the word for metrics of an error of this package, and "" for
// every other error and for nil.
func Reason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
