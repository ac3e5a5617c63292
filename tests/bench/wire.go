package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// message is a request or an answer, as far as the benchmark looks at it.
type message struct {
	status int    // of an answer
	length int    // of the body
	word   string // the Webhook-Dedupe header
	hold   string // the X-Bench-Hold header: how long the upstream shall wait
}

// errFraming is a message that this reader cannot tell the end of.
var errFraming = errors.New("a message without Content-Length")

// readMessage reads one HTTP/1.1 message and drops its body. It knows what the
// programs under test send and no more: no chunks, no continued lines. Reading
// costs the load generator as little as possible, because it shares a core with
// the upstream and Redis.
func readMessage(r *bufio.Reader) (m message, err error) {
	first, err := r.ReadSlice('\n')
	if err != nil {
		return m, err
	}
	if bytes.HasPrefix(first, []byte("HTTP/1.1 ")) && len(first) >= 12 {
		if m.status, err = strconv.Atoi(string(first[9:12])); err != nil {
			return m, fmt.Errorf("status line %q", first)
		}
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return m, err
		}
		if len(line) <= 2 {
			break
		}
		if err := m.header(line); err != nil {
			return m, err
		}
	}
	_, err = r.Discard(m.length)
	return m, err
}

func (m *message) header(line []byte) (err error) {
	switch line[0] | 0x20 {
	case 'c':
		if v, ok := headerValue(line, "Content-Length"); ok {
			m.length, err = strconv.Atoi(v)
		}
	case 't':
		if _, ok := headerValue(line, "Transfer-Encoding"); ok {
			return errFraming
		}
	case 'w':
		if v, ok := headerValue(line, "Webhook-Dedupe"); ok {
			m.word = v
		}
	case 'x':
		if v, ok := headerValue(line, "X-Bench-Hold"); ok {
			m.hold = v
		}
	}
	return err
}

func headerValue(line []byte, name string) (string, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
		return "", false
	}
	return string(bytes.TrimSpace(line[len(name)+1:])), true
}
