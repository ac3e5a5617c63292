package faults

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// relay is a network that can be slow, and an address that can be shut.
type relay struct {
	addr  string
	delay atomic.Int64 // of every piece, in either direction

	t      testing.TB
	target string

	mu       sync.Mutex
	listener net.Listener // nil while it is shut
	conns    map[net.Conn]bool
}

// startRelay starts a relay to target that is open, and quick until it is told
// otherwise.
func startRelay(t testing.TB, target string) *relay {
	t.Helper()
	r := &relay{addr: "127.0.0.1:" + harness.FreePort(t), t: t, target: target, conns: make(map[net.Conn]bool)}
	r.open()
	t.Cleanup(r.shut)
	return r
}

// open begins to listen.
func (r *relay) open() {
	var l net.Listener
	harness.Eventually(r.t, "the relay listens", func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", r.addr)
		return err == nil
	})
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	go r.accept(l)
}

// shut ends all connections, and has new ones refused.
func (r *relay) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == nil {
		return
	}
	r.listener.Close()
	r.listener = nil
	for c := range r.conns {
		c.Close()
	}
}

func (r *relay) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil || !r.keep(l, client, server) {
			client.Close()
			continue
		}
		go r.carry(client, server)
		go r.carry(server, client)
	}
}

// keep notes a connection and the one to the target, unless the relay was shut
// meanwhile.
func (r *relay) keep(l net.Listener, client, server net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != l {
		server.Close()
		return false
	}
	r.conns[client], r.conns[server] = true, true
	return true
}

// end closes a connection.
func (r *relay) end(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	c.Close()
}

// carry takes everything from one end to the other.
func (r *relay) carry(from, to net.Conn) {
	defer r.end(from)
	defer r.end(to)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if d := time.Duration(r.delay.Load()); d > 0 {
			<-time.After(d)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
