package filestore

import (
	"os"
	"syscall"
)

// datasync leaves out the times of the file, which nobody reads.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		syncErr = ignoreEINTR(func() error { return syscall.Fdatasync(int(fd)) })
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", syncErr)
}
