//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package filestore

import (
	"errors"
	"io"
)

func lockFile(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
