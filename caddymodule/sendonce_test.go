package caddymodule

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// breakingUpstream answers the first request and keeps the connection. It breaks
// every later request off after reading it, and counts them all.
func breakingUpstream(t *testing.T) (address string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	requests = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					r, err := http.ReadRequest(in)
					if err != nil || requests.Add(1) > 1 {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body) // it may come in chunks
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	return listener.Addr().String(), requests
}

// TestBrokenKeptConnectionDoesNotRepeatTheRequest, of any method, with or without
// a key that invites to: the upstream may have done the work.
func TestBrokenKeptConnectionDoesNotRepeatTheRequest(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "DELETE"} {
		for _, key := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
			address, requests := breakingUpstream(t)
			g := newGateway(t, `route {
				webhook_dedupe stableops {
					source $SOURCE
					secret $SECRET
					methods `+method+`
					replay_guard off
				}
				reverse_proxy `+address+`
			}`, nil)
			send := func(id string) *http.Response {
				r := signed(t, "stableops", id, "")
				r.Method = method
				if key != "" {
					r.Header.Set(key, "k")
				}
				return g.do(r)
			}
			expect(t, send("evt_1"), 200, "first")
			expect(t, send("evt_2"), 502, "first")
			if n := requests.Load(); n != 2 {
				t.Errorf("%s %s: the upstream got %d requests of two", method, key, n)
			}
			if got := g.logs.last(t, "delivery")["outcome"]; got != string(dedupe.OutcomeUnanswered) {
				t.Errorf("%s %s: the outcome is %v", method, key, got)
			}
		}
	}
}
