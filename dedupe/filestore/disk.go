package filestore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is the store's directory. Tests replace it to make it fail.
type disk interface {
	list() ([]string, error)
	// head reads the beginning of a file, up to len(buf) bytes.
	head(name string, buf []byte) ([]byte, error)
	read(name string) ([]byte, error)
	// create makes an empty file, instead of any that is there.
	create(name string) (file, error)
	// open opens a file to write at its end.
	open(name string) (file, error)
	rename(from, to string) error
	remove(name string) error
	// truncate cuts a file to size, on the disk too.
	truncate(name string, size int64) error
	// sync makes created, renamed and removed names last.
	sync() error
	path(name string) string
}

// file is a file being written.
type file interface {
	io.WriteCloser
	// Sync forces what was written to the disk.
	Sync() error
}

// dir is the disk that is one.
type dir string

// dataFile syncs no more than reading the data back needs.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error { return datasync(f.File) }

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) list() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (d dir) head(name string, buf []byte) ([]byte, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return buf[:n], err
}

func (d dir) read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d dir) create(name string) (file, error) {
	return d.openFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
}

func (d dir) open(name string) (file, error) {
	return d.openFile(name, os.O_WRONLY|os.O_APPEND)
}

func (d dir) openFile(name string, flags int) (file, error) {
	f, err := os.OpenFile(d.path(name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return dataFile{f}, nil
}

func (d dir) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d dir) remove(name string) error {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d dir) truncate(name string, size int64) error {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

func (d dir) sync() error { return syncDir(string(d)) }

// writeAll writes all of data, and takes a short write for an error.
func writeAll(w io.Writer, data []byte) error {
	n, err := w.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}
