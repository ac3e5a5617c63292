package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answer is what a sender got.
type Answer struct {
	Status  int
	Header  http.Header
	Body    string
	Trailer http.Header
	// Err is set if there was no answer, or if it was cut off.
	Err error
}

// Word is what the gateway says of the delivery.
func (a Answer) Word() string { return a.Header.Get("Webhook-Dedupe") }

// String is status and word: "200 first".
func (a Answer) String() string {
	if a.Err != nil {
		return "error: " + a.Err.Error()
	}
	if a.Word() == "" {
		return fmt.Sprint(a.Status)
	}
	return fmt.Sprint(a.Status, " ", a.Word())
}

// Protocol is what a sender speaks.
type Protocol string

// The protocols.
const (
	HTTP1 Protocol = "HTTP/1.1"
	HTTP2 Protocol = "HTTP/2"
)

// Protocols are all of them. HTTP/2 goes over TLS where the gateway has it.
var Protocols = []Protocol{HTTP1, HTTP2}

// client returns a client with connections of its own, which follows nothing.
func (p Protocol) client(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	t := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: p == HTTP1, ExpectContinueTimeout: Patience}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(p == HTTP1)
	t.Protocols.SetHTTP2(p == HTTP2)
	t.Protocols.SetUnencryptedHTTP2(p == HTTP2)
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // it is the gateway's own authority that signs
	return &http.Client{
		Transport:     t,
		Timeout:       Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Call is a delivery on its way.
type Call struct {
	cancel context.CancelFunc
	done   chan struct{}
	answer Answer

	mu    sync.Mutex
	conns []net.Conn
}

// Begin sends a delivery and does not wait for the answer.
func (g *Gateway) Begin(t testing.TB, p Protocol, d *Delivery) *Call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := d.request(ctx, g.URL)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	c := &Call{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer cancel()
		defer c.close()
		c.answer = exchange(p.client(c.dial), r)
	}()
	t.Cleanup(c.HangUp)
	return c
}

func (c *Call) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// close closes the connections themselves: an HTTP/2 client would keep them.
func (c *Call) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

func exchange(client *http.Client, r *http.Request) Answer {
	resp, err := client.Do(r)
	if err != nil {
		return Answer{Err: err}
	}
	return read(resp)
}

func read(resp *http.Response) Answer {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Trailer: resp.Trailer, Err: err}
}

// HangUp breaks the connection off, as a sender does whose time is over.
func (c *Call) HangUp() {
	c.cancel()
	<-c.done
}

// Answered reports whether the answer has come.
func (c *Call) Answered() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Answer waits for the answer.
func (c *Call) Answer() Answer {
	<-c.done
	return c.answer
}

// Send sends a delivery over HTTP/1.1 and waits for the answer.
func (g *Gateway) Send(t testing.TB, d *Delivery) Answer {
	t.Helper()
	return g.Begin(t, HTTP1, d).Answer()
}

// Expect sends a delivery and fails the test if the answer is not status and
// word, as [Answer.String] gives them.
func (g *Gateway) Expect(t testing.TB, d *Delivery, want string) Answer {
	t.Helper()
	a := g.Send(t, d)
	if a.String() != want {
		t.Fatalf("event %s: the sender got %q, want %q", d.Event, a, want)
	}
	return a
}

// RetryUntil sends a delivery again and again, as a stubborn sender does, until
// the answer is want, or one of several with "|" between them. Every answer
// before must be one of early.
func (g *Gateway) RetryUntil(t testing.TB, d *Delivery, want string, early ...string) Answer {
	t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		a := g.Send(t, d)
		if slices.Contains(strings.Split(want, "|"), a.String()) {
			return a
		}
		if !slices.Contains(early, a.String()) {
			t.Fatalf("event %s: the sender got %q while waiting for %q", d.Event, a, want)
		}
	}
	t.Fatalf("event %s: waited in vain for %q", d.Event, want)
	return Answer{}
}

// Dial opens a raw connection to the gateway.
func (g *Gateway) Dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Patience))
	return conn
}

// SendRaw writes bytes to a connection of its own and reads one answer.
func (g *Gateway) SendRaw(t testing.TB, request string) Answer {
	t.Helper()
	conn := g.Dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return Answer{Err: err}
	}
	return ReadAnswer(conn)
}

// ReadAnswer reads an answer from a raw connection.
func ReadAnswer(conn net.Conn) Answer {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return Answer{Err: err}
	}
	return read(resp)
}
