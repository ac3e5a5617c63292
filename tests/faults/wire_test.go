package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// wire is how the upstream's answer gets to the gateway: from this process, or
// from PHP.
type wire interface {
	// answer sends a complete answer.
	answer(status int, last bool)
	// answerAtLength sends an answer that is longer than the gateway holds.
	answerAtLength(status int, end ending)
	// cutOff sends this much of an answer, and breaks the connection.
	cutOff(c cut)
	// stall sends the head and a part of an answer and waits for the client's end.
	stall(status int)
	// gone is closed when there is nobody any more to answer to, as far as the
	// upstream can know.
	gone() <-chan struct{}
}

// cut is where an answer breaks off.
type cut int

const (
	beforeAll cut = iota
	withinBody
	withinChunks
)

// ending is how a long answer ends.
type ending int

const (
	whole ending = iota
	brokenOff
	stalled
)

// httpWire answers in this process.
type httpWire struct {
	t testing.TB
	w http.ResponseWriter
	r *http.Request
}

func (c *httpWire) gone() <-chan struct{} { return c.r.Context().Done() }

func (c *httpWire) answer(status int, last bool) {
	if last { // so that the next request dials
		c.w.Header().Set("Connection", "close")
	}
	c.w.Header().Set("Location", "/elsewhere")
	c.w.WriteHeader(status)
	if status != http.StatusNoContent {
		_, _ = io.WriteString(c.w, "the upstream's answer")
	}
}

func (c *httpWire) answerAtLength(status int, end ending) {
	if end == brokenOff {
		c.hijack(func(conn net.Conn, rw *bufio.ReadWriter) {
			_, _ = fmt.Fprintf(rw, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n\r\n%*s", status, http.StatusText(status), 2*longAnswer, longAnswer, "")
		})
		return
	}
	c.w.Header().Set("Location", "/elsewhere")
	if end == stalled {
		c.w.Header().Set("Content-Length", strconv.Itoa(2*longAnswer))
	}
	c.w.WriteHeader(status)
	_, _ = fmt.Fprintf(c.w, "%*s", longAnswer, "")
	if end == stalled {
		_ = http.NewResponseController(c.w).Flush()
		<-c.gone()
	}
}

func (c *httpWire) stall(status int) {
	c.w.Header().Set("Content-Length", "100")
	c.w.WriteHeader(status)
	_, _ = io.WriteString(c.w, "only this")
	_ = http.NewResponseController(c.w).Flush()
	<-c.gone()
}

func (c *httpWire) cutOff(where cut) {
	c.hijack(func(conn net.Conn, rw *bufio.ReadWriter) {
		switch where {
		case beforeAll:
			_ = conn.(*net.TCPConn).SetLinger(0)
		case withinBody:
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
		case withinChunks:
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n")
		}
	})
}

// hijack lets answer have the connection, and closes it.
func (c *httpWire) hijack(answer func(net.Conn, *bufio.ReadWriter)) {
	conn, rw, err := c.w.(http.Hijacker).Hijack()
	if err != nil {
		c.t.Error(err)
		return
	}
	answer(conn, rw)
	_ = rw.Flush()
	conn.Close()
}

// phpWire tells a PHP process what to answer.
type phpWire struct {
	conn net.Conn
	end  chan struct{} // closed when PHP has died, or has ended
	// tired is closed when PHP has waited for long enough: it does not see its
	// client go.
	tired <-chan struct{}
}

func (c *phpWire) say(word string, args ...any) {
	_, _ = fmt.Fprintln(c.conn, append([]any{word}, args...)...)
	<-c.end
}

func (c *phpWire) gone() <-chan struct{}     { return c.tired }
func (c *phpWire) answer(status int, _ bool) { c.say("answer", status) }

func (c *phpWire) cutOff(where cut) {
	if where == beforeAll {
		c.say("die")
		return
	}
	c.say("cut") // FastCGI has no chunks
}

// answerAtLength ends well or stalls: PHP that dies takes back what it said.
func (c *phpWire) answerAtLength(status int, end ending) {
	if end == whole {
		c.say("long", status, longAnswer)
		return
	}
	_, _ = fmt.Fprintln(c.conn, "stall", status, longAnswer)
	<-c.tired
}

func (c *phpWire) stall(int) {
	_, _ = fmt.Fprintln(c.conn, "stall")
	<-c.tired
}

// startPHP runs the script that does as the upstream says.
func startPHP(t testing.TB, u *upstream) *harness.PHP {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go u.servePHP(conn)
		}
	}()
	return harness.StartScript(t, "testdata/receiver.php", 24, "ledger", l.Addr().String())
}

// servePHP is one request that PHP has got.
func (u *upstream) servePHP(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	var hello struct{ Try, Event, Word string }
	line, err := r.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &hello) != nil {
		return // it died over it
	}
	q := &request{try: hello.Try, event: hello.Event, word: hello.Word, start: time.Now()}
	s, work := u.begin(q)
	c := &phpWire{conn: conn, end: make(chan struct{})}
	tired := make(chan struct{})
	c.tired = tired
	tire := sync.OnceFunc(func() { close(tired) })
	patience := time.AfterFunc(upstreamTimeout+lease, tire)
	defer patience.Stop()
	go func() {
		_, _ = r.ReadByte() // it says nothing more: this is its end
		tire()
		close(c.end)
	}()
	defer func() { u.note(func() { q.end = time.Now() }) }()
	s.run(&service{u: u, q: q, wire: c, work: work})
}
