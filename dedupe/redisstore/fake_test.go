package redisstore

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// serve accepts connections on a free port until the test ends and hands each
// to handle, which owns it.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() { defer c.Close(); handle(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// fate is what a proxy does with a request.
type fate int

const (
	pass    fate = iota // forward it, and its answer
	sever               // forward it, throw its answer away and close
	swallow             // forward it, throw its answer away and say nothing more
)

// proxy forwards to a server whatever decide lets pass.
type proxy struct {
	addr   string
	target atomic.Pointer[string]
	decide atomic.Pointer[func(request string) fate]
}

func startProxy(t *testing.T, target string) *proxy {
	p := &proxy{}
	p.target.Store(&target)
	p.decideBy(func(string) fate { return pass })
	p.addr = serve(t, p.handle)
	return p
}

func (p *proxy) decideBy(decide func(request string) fate) { p.decide.Store(&decide) }

func (p *proxy) handle(client net.Conn) {
	up, err := net.Dial("tcp", *p.target.Load())
	if err != nil {
		return
	}
	var doomed atomic.Int32
	var back sync.WaitGroup
	back.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := up.Read(buf)
			if err != nil || fate(doomed.Load()) == sever {
				client.Close()
				return
			}
			if fate(doomed.Load()) == pass {
				client.Write(buf[:n])
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		if f := (*p.decide.Load())(string(buf[:n])); f != pass {
			doomed.Store(int32(f))
		}
		up.Write(buf[:n])
	}
	up.Close()
	back.Wait()
}

// once returns a decision that gives the first request with text the fate f.
func once(text string, f fate) (decide func(string) fate, hit *atomic.Bool) {
	hit = new(atomic.Bool)
	return func(request string) fate {
		if strings.Contains(request, text) && hit.CompareAndSwap(false, true) {
			return f
		}
		return pass
	}, hit
}

// startStub is a server that answers each command with what reply returns, in
// RESP without the final line end. "" stands for an ordinary handshake.
func startStub(t *testing.T, reply func(args []string) string) string {
	return serve(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			args, err := readCommand(r)
			if err != nil {
				return
			}
			answer := reply(args)
			if answer == "" {
				answer = handshake(args)
			}
			fmt.Fprintf(c, "%s\r\n", answer)
		}
	})
}

func handshake(args []string) string {
	switch args[0] {
	case "hello":
		return "-ERR unknown command 'HELLO'"
	case "ping":
		return "+PONG"
	}
	return "+OK"
}

// readCommand reads one command, its name in lower case.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	args[0] = strings.ToLower(args[0])
	return args, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil || line[0] != kind {
		return 0, io.ErrUnexpectedEOF
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
