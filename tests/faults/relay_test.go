package faults

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// relay is a network that can be slow.
type relay struct {
	addr  string
	delay atomic.Int64 // of every piece, in either direction
}

// startRelay starts a relay to target that is quick until it is told otherwise.
func startRelay(t testing.TB, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{addr: l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			go r.carry(client, server)
			go r.carry(server, client)
		}
	}()
	return r
}

// carry takes everything from one end to the other.
func (r *relay) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
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
