package filestore

import (
	"sync"
	"testing/synctest"
)

// gate holds an operation of the disk back until it is opened.
type gate struct {
	op      string
	pass    chan error // what the operation that is held back returns
	mu      sync.Mutex
	arrived int
}

func holdBack(f *fixture, op string) *gate {
	g := &gate{op: op, pass: make(chan error)}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.fault = nil
	f.gate(g)
	return g
}

// gate puts g before the files of the disk.
func (f *fixture) gate(g *gate) {
	f.Store.current.file = &gatedFile{f.Store.current.file, g}
}

type gatedFile struct {
	file
	*gate
}

func (f *gatedFile) hold(op string) error {
	if op != f.op {
		return nil
	}
	f.mu.Lock()
	f.arrived++
	f.mu.Unlock()
	return <-f.pass
}

func (f *gatedFile) Write(data []byte) (int, error) {
	if err := f.hold("write"); err != nil {
		return 0, err
	}
	return f.file.Write(data)
}

func (f *gatedFile) Sync() error {
	if err := f.hold("fsync"); err != nil {
		return err
	}
	return f.file.Sync()
}

// call runs something in the background and keeps its error.
type call struct{ done chan error }

func start(do func() error) call {
	c := call{make(chan error, 1)}
	go func() { c.done <- do() }()
	synctest.Wait()
	return c
}

// returned reports whether the call is over, and with which error.
func (c call) returned() (error, bool) {
	synctest.Wait()
	select {
	case err := <-c.done:
		return err, true
	default:
		return nil, false
	}
}
