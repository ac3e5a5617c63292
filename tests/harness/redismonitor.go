package harness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// RedisMonitor notes what a server is asked.
type RedisMonitor struct {
	redis *Redis
	conn  net.Conn

	mu    sync.Mutex
	lines []string
}

// Monitor begins to note what the server is asked.
func (r *Redis) Monitor(t testing.TB) *RedisMonitor {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m := &RedisMonitor{redis: r, conn: conn}
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	go m.read()
	m.catchUp(t)
	return m
}

func (m *RedisMonitor) read() {
	for s := bufio.NewScanner(m.conn); s.Scan(); {
		m.mu.Lock()
		m.lines = append(m.lines, s.Text())
		m.mu.Unlock()
	}
}

// catchUp waits until everything asked before is noted.
func (m *RedisMonitor) catchUp(t testing.TB) {
	t.Helper()
	Eventually(t, "the monitor notes what Redis is asked", func() bool {
		mark := Unique("mark")
		m.redis.Client.Echo(context.Background(), mark)
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.ContainsFunc(m.lines, func(l string) bool { return strings.Contains(l, mark) })
	})
}

// Commands are those that touched the keys of events or bindings.
func (m *RedisMonitor) Commands(t testing.TB) (commands []string) {
	t.Helper()
	m.catchUp(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		if strings.Contains(line, "webhook_dedupe") && !strings.Contains(line, probe) {
			commands = append(commands, line)
		}
	}
	return commands
}
