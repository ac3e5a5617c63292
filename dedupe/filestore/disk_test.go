package filestore

import (
	"errors"
	"os"
	"sync"
)

// testDisk is a directory that does not really sync, and that fails on demand.
type testDisk struct {
	dir
	mu    sync.Mutex
	fault func(op, name string) error // nil results let the operation pass
	syncs int                         // of files
	short int                         // how much of a failing write is written
}

func (d *testDisk) check(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op == "fsync" {
		d.syncs++
	}
	if d.fault == nil {
		return nil
	}
	return d.fault(op, name)
}

// failing makes the operations in ops fail with err, until it is called anew.
func (d *testDisk) failing(err error, ops ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = func(op, _ string) error {
		for _, o := range ops {
			if o == op {
				return err
			}
		}
		return nil
	}
}

func (d *testDisk) hook(fault func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *testDisk) create(name string) (file, error) {
	if err := d.check("create", name); err != nil {
		return nil, err
	}
	f, err := d.dir.create(name)
	return &testFile{f, d, name}, err
}

func (d *testDisk) rename(from, to string) error {
	if err := d.check("rename", to); err != nil {
		return err
	}
	return d.dir.rename(from, to)
}

func (d *testDisk) remove(name string) error {
	if err := d.check("remove", name); err != nil {
		return err
	}
	return d.dir.remove(name)
}

func (d *testDisk) truncate(name string, size int64) error {
	if err := d.check("truncate", name); err != nil {
		return err
	}
	return os.Truncate(d.path(name), size)
}

func (d *testDisk) sync() error { return d.check("sync", "") }

type testFile struct {
	file
	disk *testDisk
	name string
}

// errShortWrite makes a write short without an error of its own.
var errShortWrite = errors.New("short")

func (d *testDisk) open(name string) (file, error) {
	if err := d.check("open", name); err != nil {
		return nil, err
	}
	f, err := d.dir.open(name)
	return &testFile{f, d, name}, err
}

func (f *testFile) Write(data []byte) (int, error) {
	if err := f.disk.check("write", f.name); err != nil {
		n, _ := f.file.Write(data[:min(f.disk.short, len(data))])
		if errors.Is(err, errShortWrite) {
			err = nil
		}
		return n, err
	}
	return f.file.Write(data)
}

func (f *testFile) Sync() error { return f.disk.check("fsync", f.name) }
