package filestore

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

const (
	lockName = "lock"
	// lockWait is how long Open waits for a store that is still letting go.
	lockWait  = time.Second
	lockRetry = 20 * time.Millisecond
)

// errBusy is what lockFile returns when somebody else has the lock.
var errBusy = errors.New("locked")

// lockDir takes the directory for this store, or returns ErrLocked once wait is
// over. The operating system lets go of the lock when the process dies.
func lockDir(dir string, wait time.Duration) (io.Closer, error) {
	for waited := time.Duration(0); ; waited += lockRetry {
		f, err := lockFile(filepath.Join(dir, lockName))
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, errBusy):
			return nil, fmt.Errorf("filestore: cannot lock %s: %w", dir, err)
		case waited >= wait:
			return nil, fmt.Errorf("filestore: %s: %w", dir, ErrLocked)
		}
		time.Sleep(lockRetry)
	}
}

// Lock takes a directory for this process, as Open does but without waiting. It
// returns an error that wraps [ErrLocked] if another process has it. Closing the
// lock, and the end of the process, give it back.
func Lock(dir string) (io.Closer, error) { return lockDir(dir, 0) }
