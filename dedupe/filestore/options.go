package filestore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Sync says when written records are forced to the disk. It matters for power
// cuts and crashes of the operating system only.
type Sync uint8

const (
	// EverySec syncs in the background once a second while there is something
	// to sync. A power cut can take what was written since: the events of up to
	// a second, or more while the disk is slow, may then be delivered again.
	EverySec Sync = iota
	// Always syncs before any caller is told. Callers that come together share
	// a sync.
	Always
)

// String returns the mode's name: everysec or always.
func (m Sync) String() string {
	if m == Always {
		return "always"
	}
	return "everysec"
}

// Options adjusts a Store. The zero value is ready to use.
type Options struct {
	// Sync says when written records are forced to the disk. Default EverySec.
	Sync Sync
	// Now is the clock. Its wall reading counts for times to live, and its
	// monotonic reading, where there is one, for leases. Default time.Now.
	Now func() time.Time
	// Logger is told what was cut off when the directory was opened, and when
	// the store fails and recovers. Default: nobody is.
	Logger *slog.Logger
}

var (
	// ErrLocked says that another process, or another Store of this one, has
	// the directory open.
	ErrLocked = errors.New("the directory is in use by another process")
	// ErrClosed says that the store was closed before the call.
	ErrClosed = errors.New("filestore: the store is closed")
)

// DamageError says that a segment is damaged where an interrupted write cannot
// be the reason, so that opening the directory would forget events.
type DamageError struct {
	// File is the path of the segment.
	File string
	// Offset is where in the file the damage begins, in bytes.
	Offset int64
	// Reason says what is wrong there.
	Reason string
}

// Error names file, offset and reason, and what can be done about it.
func (e *DamageError) Error() string {
	return fmt.Sprintf("filestore: %s is damaged at offset %d: %s; restore the file, "+
		"or move it out of the directory to go on without the events it holds, "+
		"which may then be delivered again", e.File, e.Offset, e.Reason)
}
