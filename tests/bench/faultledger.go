package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// faultLedger is an upstream that fails, and the book of what became of each
// event at both ends.
type faultLedger struct {
	address string
	server  *http.Server

	mu       sync.Mutex
	rand     *rand.Rand
	events   map[string]*faultEvent // by id
	refusals int                    // answers other than 2xx
}

// faultEvent is what became of an event.
type faultEvent struct {
	worked       int // how often the upstream did its work
	acknowledged bool
	repeated     int // how often it did again after the sender had got a 2xx
}

func newFaultLedger() (*faultLedger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &faultLedger{
		address: listener.Addr().String(),
		rand:    rand.New(rand.NewPCG(1, 2)), // the same faults for every variant
		events:  make(map[string]*faultEvent),
	}
	l.server = &http.Server{Handler: http.HandlerFunc(l.receive)}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

func (l *faultLedger) close() { _ = l.server.Shutdown(context.Background()) }

// event returns an event's entry. l.mu is held.
func (l *faultLedger) event(id string) *faultEvent {
	e := l.events[id]
	if e == nil {
		e = new(faultEvent)
		l.events[id] = e
	}
	return e
}

// receive is the upstream. Of a hundred requests it refuses 10, breaks the
// connection of 4 before its work and of 4 after it, takes long for 4 and hangs
// for 2.
func (l *faultLedger) receive(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	fate := l.rand.IntN(100)
	l.mu.Unlock()
	switch {
	case fate < 10:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case fate < 14:
		panic(http.ErrAbortHandler)
	case fate < 20:
		time.Sleep(300 * time.Millisecond)
		if fate < 16 {
			time.Sleep(1200 * time.Millisecond)
			panic(http.ErrAbortHandler)
		}
	}
	l.work(r.Header.Get("X-GitHub-Delivery"))
	if fate >= 96 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusOK)
}

// work notes that the upstream does the work of an event.
func (l *faultLedger) work(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.event(id)
	if e.acknowledged && e.worked > 0 {
		e.repeated++
	}
	e.worked++
}

// answered notes an answer that a sender got.
func (l *faultLedger) answered(id string, status int) (acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.event(id)
	if status < 200 || status > 299 {
		l.refusals++
		return false
	}
	e.acknowledged = true
	return true
}

// faultSender delivers one event.
type faultSender struct {
	ledger  *faultLedger
	address string
	salt    string
	n       uint64
}

// deliver sends the event until it is acknowledged.
func (s *faultSender) deliver() {
	for range faultTries {
		if s.ledger.answered(idOf(s.salt, s.n), s.try()) {
			return
		}
		time.Sleep(faultPause)
	}
}

// try sends the event once and returns the status of the answer, or 0.
func (s *faultSender) try() int {
	request, err := newTemplate("github", 1024, "Connection: close\r\n")
	if err != nil {
		panic(err)
	}
	conn, err := net.DialTimeout("tcp", s.address, faultTimeOut)
	if err != nil {
		return 0
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(faultTimeOut)) != nil {
		return 0
	}
	if _, err := conn.Write(request.event(s.salt, s.n, time.Now())); err != nil {
		return 0
	}
	m, _ := readMessage(bufio.NewReader(conn))
	return m.status
}
