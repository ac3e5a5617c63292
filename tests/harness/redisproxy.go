package harness

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Fate is what becomes of commands on their way to Redis. Commands that were
// sent together share one.
type Fate struct {
	kind  fateKind
	reply string
}

type fateKind int

const (
	pass fateKind = iota
	cutBefore
	cutAfter
	swallow
	refuse
)

// The fates.
var (
	// Pass lets the commands through, and what they answer.
	Pass = Fate{kind: pass}
	// CutBefore closes the connection before the server sees the commands.
	CutBefore = Fate{kind: cutBefore}
	// CutAfter lets the server run the commands, throws the answers away and
	// closes the connection.
	CutAfter = Fate{kind: cutAfter}
	// Swallow lets the server run the commands and throws the answers away, now
	// and for ever after on this connection.
	Swallow = Fate{kind: swallow}
)

// Refuse answers each command with an error instead of the server: "LOADING
// Redis is loading the dataset in memory".
func Refuse(reply string) Fate { return Fate{refuse, reply} }

// RedisProxy stands between a gateway and a Redis server.
type RedisProxy struct {
	// Addr is host:port.
	Addr string

	mu     sync.Mutex
	target string
	decide func(commands []string) Fate
}

// StartRedisProxy starts a proxy that lets everything pass until it is told
// otherwise.
func StartRedisProxy(t testing.TB, target string) *RedisProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &RedisProxy{Addr: l.Addr().String(), target: target}
	p.Decide(func([]string) Fate { return Pass })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

// Decide sets who decides on commands, which come in lower case with their
// arguments: "set webhook_dedupe:shop:evt_1 ...".
func (p *RedisProxy) Decide(decide func(commands []string) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

// Redirect sets the server of the connections to come.
func (p *RedisProxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Once decides on the first commands in which one holds text, and lets all
// others pass. The channel is closed when it has happened.
func (p *RedisProxy) Once(text string, fate Fate) <-chan struct{} {
	happened := make(chan struct{})
	var once sync.Once
	p.Decide(func(commands []string) (f Fate) {
		if strings.Contains(strings.Join(commands, "\n"), text) {
			once.Do(func() {
				f = fate
				close(happened)
			})
		}
		return f
	})
	return happened
}

// serve handles one connection of a gateway.
func (p *RedisProxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	link := &redisLink{client: client, server: server, cut: make(chan struct{})}
	go link.answers()
	var pending []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		pending = append(pending, buf[:n]...)
		commands, rest := parseCommands(pending)
		if len(commands) == 0 {
			continue
		}
		whole := pending[:len(pending)-len(rest)]
		p.mu.Lock()
		fate := p.decide(commands)
		p.mu.Unlock()
		if !link.do(fate, whole, len(commands)) {
			return
		}
		pending = bytes.Clone(rest)
	}
}

// redisLink is a connection of a gateway and the one to the server behind it.
type redisLink struct {
	client, server net.Conn
	cut            chan struct{} // closed when a thrown-away answer has come

	mu   sync.Mutex
	mode fateKind
}

// do carries a fate out and reports whether the connection goes on.
func (l *redisLink) do(f Fate, commands []byte, n int) bool {
	switch f.kind {
	case cutBefore:
		return false
	case refuse:
		_, err := io.WriteString(l.client, strings.Repeat("-"+f.reply+"\r\n", n))
		return err == nil
	case cutAfter, swallow:
		l.mu.Lock()
		l.mode = f.kind
		l.mu.Unlock()
	}
	if _, err := l.server.Write(commands); err != nil {
		return false
	}
	if f.kind == cutAfter {
		<-l.cut
		return false
	}
	return true
}

// answers carries what the server says back to the gateway, if it may.
func (l *redisLink) answers() {
	defer l.client.Close()
	var once sync.Once
	defer once.Do(func() { close(l.cut) })
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		mode := l.mode
		l.mu.Unlock()
		switch mode {
		case pass:
			if _, err := l.client.Write(buf[:n]); err != nil {
				return
			}
		case cutAfter:
			once.Do(func() { close(l.cut) })
		}
	}
}

// parseCommands takes whole commands off the front of b.
func parseCommands(b []byte) (commands []string, rest []byte) {
	for {
		command, after, ok := parseCommand(b)
		if !ok {
			return commands, b
		}
		commands = append(commands, strings.ToLower(command))
		b = after
	}
}

func parseCommand(b []byte) (command string, rest []byte, ok bool) {
	n, b, ok := parseCount(b, '*')
	if !ok {
		return "", nil, false
	}
	words := make([]string, 0, n)
	for range n {
		var size int
		if size, b, ok = parseCount(b, '$'); !ok || len(b) < size+2 {
			return "", nil, false
		}
		words = append(words, string(b[:size]))
		b = b[size+2:]
	}
	return strings.Join(words, " "), b, true
}

func parseCount(b []byte, kind byte) (n int, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(b, []byte("\r\n"))
	if !found || len(line) < 2 || line[0] != kind {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(line[1:]))
	return n, rest, err == nil
}
