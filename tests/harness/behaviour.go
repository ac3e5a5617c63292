package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Behaviour is what the upstream does with a request that it has read.
type Behaviour func(u *Upstream, w http.ResponseWriter, r *http.Request)

// Status answers with a status and a short body.
func Status(status int) Behaviour {
	return Reply(status, "text/plain", "upstream says "+strconv.Itoa(status))
}

// Reply answers with a status, a content type and a body.
func Reply(status int, contentType, body string) Behaviour {
	return func(_ *Upstream, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-From-Upstream", "yes")
		w.WriteHeader(status)
		if status != http.StatusNoContent && status != http.StatusNotModified {
			_, _ = w.Write([]byte(body))
		}
	}
}

// Redirect answers with a redirect to location.
func Redirect(status int, location string) Behaviour {
	return func(_ *Upstream, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

// Latch holds something up until it is released.
type Latch struct {
	open chan struct{}
	once sync.Once
}

// NewLatch returns a closed latch.
func NewLatch() *Latch { return &Latch{open: make(chan struct{})} }

// Release opens the latch, for good.
func (l *Latch) Release() { l.once.Do(func() { close(l.open) }) }

// Released reports whether the latch is open.
func (l *Latch) Released() bool {
	select {
	case <-l.open:
		return true
	default:
		return false
	}
}

// After works until the latch is released, whatever becomes of its client, as
// an old application does, and then goes on with b.
func After(l *Latch, b Behaviour) Behaviour {
	return func(u *Upstream, w http.ResponseWriter, r *http.Request) {
		select {
		case <-l.open:
			b(u, w, r)
		case <-u.ending:
		}
	}
}

// Hang never answers. It ends when its client does.
func Hang() Behaviour {
	return func(u *Upstream, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-u.ending:
		}
	}
}

// Reset breaks the connection before anything is answered.
func Reset() Behaviour {
	return raw(func(conn net.Conn, _ *bufio.ReadWriter) {
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
}

// Close closes the connection before anything is answered.
func Close() Behaviour { return Raw("") }

// Raw answers with these bytes and closes the connection.
func Raw(answer string) Behaviour {
	return raw(func(_ net.Conn, rw *bufio.ReadWriter) {
		_, _ = rw.WriteString(answer)
		_ = rw.Flush()
	})
}

// CutOffLength answers with a head that promises more than comes.
func CutOffLength(status int) Behaviour {
	return Raw(fmt.Sprintf("HTTP/1.1 %d Some Text\r\nContent-Length: 1000\r\n\r\nonly this", status))
}

// CutOffChunked answers with a chunked body that has no end.
func CutOffChunked(status int) Behaviour {
	return Raw(fmt.Sprintf("HTTP/1.1 %d Some Text\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", status))
}

// CutOffHead breaks off within the answer's headers.
func CutOffHead(status int) Behaviour {
	return Raw(fmt.Sprintf("HTTP/1.1 %d Some Text\r\nContent-Le", status))
}

// Interim sends interim answers before b's.
func Interim(b Behaviour, statuses ...int) Behaviour {
	return func(u *Upstream, w http.ResponseWriter, r *http.Request) {
		for _, status := range statuses {
			w.WriteHeader(status)
		}
		b(u, w, r)
	}
}

// Huge answers with a body of size bytes, with or without saying so before.
func Huge(status, size int, chunked bool) Behaviour {
	return func(_ *Upstream, w http.ResponseWriter, _ *http.Request) {
		if !chunked {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		w.WriteHeader(status)
		block := bytes.Repeat([]byte("x"), 64<<10)
		for left := size; left > 0; left -= len(block) {
			if _, err := w.Write(block[:min(left, len(block))]); err != nil {
				return
			}
		}
	}
}

// raw takes the connection over and closes it after act.
func raw(act func(net.Conn, *bufio.ReadWriter)) Behaviour {
	return func(u *Upstream, w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			u.t.Error(err)
			return
		}
		defer conn.Close()
		act(conn, rw)
	}
}

// Partial answers with these bytes and then hangs until its client has gone.
func Partial(answer string) Behaviour {
	return raw(func(conn net.Conn, rw *bufio.ReadWriter) {
		_, _ = rw.WriteString(answer)
		_ = rw.Flush()
		_, _ = conn.Read(make([]byte, 1))
	})
}
