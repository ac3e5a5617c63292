package caddymodule

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// recorder is the ResponseWriter that the upstream answers into. It holds the
// answer until it is complete, so that nothing of it reaches the sender before
// the store knows how the delivery ended. An answer longer than limit is judged by
// its status when the limit is reached, and streamed from there: to its end if the
// store knows it, and else but for its last piece.
//
// It has no Unwrap, Hijack or ReadFrom on purpose: each would let an answer by.
type recorder struct {
	sender http.ResponseWriter
	method string
	limit  int64
	word   dedupe.Result
	// overflow is asked once, when the limit is reached; it says whether the
	// answer may go on to the sender as it is, and whether the store knows it.
	overflow func(answer) (passes, settled bool)
	// prefix is what the body of a success begins with; not longer than limit.
	prefix string
	// deadline is when a streamed answer must have reached the sender, unless the
	// server limits the writing itself.
	deadline time.Time
	limited  bool

	mu       sync.Mutex
	mode     recorderMode
	header   http.Header
	inPlace  bool          // header is the sender's own
	before   []headerField // of the sender's own then, as it was
	sent     http.Header   // of the head: header, or how it was at the status if trailers are announced
	status   int
	body     []byte
	kept     bool  // the last piece of what is streamed is kept, in body
	length   int64 // of the body so far, whatever became of it
	judged   bool  // whether the body begins with prefix is known
	wrong    bool  // it does not
	dead     bool  // the sender does not read any more
	trailers bool
}

type recorderMode uint8

const (
	holding recorderMode = iota
	streaming
	// discarding: what still comes is counted but goes nowhere.
	discarding
)

// headerField is one field of a header.
type headerField struct {
	name   string
	values []string
}

// setHeader has the upstream write the header of its answer over those fields that
// the handlers before this one have set: in a copy; or in place, which saves two, if
// the chain surely has ended whenever the gateway answers instead of it.
func (rec *recorder) setHeader(inPlace bool) {
	rec.header, rec.inPlace = rec.sender.Header(), inPlace
	if !inPlace {
		rec.header = rec.header.Clone()
		return
	}
	size := 0
	for _, values := range rec.header {
		size += len(values)
	}
	// The values are copied: Caddy's handlers replace some where they are, and that of
	// Server belongs to the whole process.
	all := make([]string, 0, size)
	rec.before = make([]headerField, 0, len(rec.header))
	for name, values := range rec.header {
		rec.before = append(rec.before, headerField{name, values})
		if values != nil { // nil keeps Go from writing a field of its own
			all = append(all, values...)
			rec.header[name] = all[len(all)-len(values) : len(all) : len(all)]
		}
	}
}

// restore makes the sender's header what it was before the upstream was called, for
// an answer of the gateway's own.
func (rec *recorder) restore() {
	if !rec.inPlace {
		return
	}
	h := rec.sender.Header()
	clear(h)
	for _, f := range rec.before {
		h[f.name] = f.values
	}
}

// Header implements [http.ResponseWriter].
func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader implements [http.ResponseWriter]. Interim answers are not relayed:
// the first of them is not the answer.
func (rec *recorder) WriteHeader(status int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.writeHeader(status)
}

func (rec *recorder) writeHeader(status int) {
	if rec.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	rec.status = status
	rec.sent = rec.header
	if rec.header["Trailer"] != nil {
		rec.trailers = true
		rec.sent = rec.header.Clone()
	}
}

// Write implements [http.ResponseWriter].
func (rec *recorder) Write(p []byte) (int, error) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.writeHeader(http.StatusOK)
	rec.length += int64(len(p))
	switch {
	case rec.mode == streaming:
		rec.stream(p)
	case rec.judged:
	case rec.length <= rec.limit:
		rec.body = append(rec.body, p...)
	default:
		rec.judge(p)
		rec.overflowWith(p)
	}
	return len(p), nil
}

// overflowWith ends the holding when p does not fit any more.
func (rec *recorder) overflowWith(p []byte) {
	if rec.mode == holding {
		rec.mode = discarding
		if passes, settled := rec.overflow(answer{status: rec.status, whole: true, wrong: rec.wrong}); passes {
			rec.mode = streaming
			rec.limitWriting(rec.deadline)
			rec.relay()
			rec.body, rec.kept = nil, !settled
			rec.stream(p)
			return
		}
	}
	rec.body = nil
}

// stream passes p on, or what was kept before it.
func (rec *recorder) stream(p []byte) {
	if rec.kept && len(p) > 0 {
		rec.relayBody(rec.body)
		rec.body = append(rec.body[:0], p...)
		return
	}
	rec.relayBody(p)
}

// judge decides whether the body, of which more comes after what is held, begins
// with prefix.
func (rec *recorder) judge(more []byte) {
	rec.judged = true
	if rec.prefix != "" {
		rec.wrong = bodiless(rec.method, rec.status) || !beginsWith(codingOf(rec.sent), slices.Concat(rec.body, more), rec.prefix)
	}
}

// FlushError lets [http.ResponseController] flush a streamed answer. A held one
// has nothing to flush.
func (rec *recorder) FlushError() error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.mode != streaming || rec.dead {
		return nil
	}
	return ignoreUnsupported(http.NewResponseController(rec.sender).Flush())
}

// relay sends the status, the headers and what is held of the body to the
// sender. rec.mu is held, or the upstream has returned.
func (rec *recorder) relay() {
	h := rec.sender.Header()
	if rec.inPlace && (rec.trailers || rec.mode == streaming) {
		// What is yet to come, or came after the status, is not of the head; and what the
		// upstream said of its length stays, whatever the handlers before make of it.
		rec.header = maps.Clone(h)
		if !rec.trailers {
			rec.sent = rec.header
		}
	}
	if !rec.inPlace || rec.trailers {
		clear(h)
		maps.Copy(h, rec.sent)
	}
	h[resultHeader] = []string{string(rec.word)}
	rec.sender.WriteHeader(rec.status)
	rec.relayBody(rec.body)
}

// relayBody goes on when the sender has gone: the upstream shall not notice.
func (rec *recorder) relayBody(p []byte) {
	if rec.dead || len(p) == 0 {
		return
	}
	if _, err := rec.sender.Write(p); err != nil {
		rec.dead = true
	}
}

// finish sends a held answer, and what trailers there are.
func (rec *recorder) finish() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.mode == holding {
		rec.relay()
	}
	if rec.mode == discarding || rec.dead {
		return
	}
	if rec.kept {
		rec.relayBody(rec.body)
	}
	h := rec.sender.Header()
	for name, values := range rec.header {
		if rec.trailers && rec.sent[name] == nil || strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values
		}
	}
	rec.limitWriting(time.Time{})
}

// limitWriting makes writing to the sender fail after t, or no more. One that
// reads slowly must not keep a streamed answer, and with it the upstream call,
// longer than the exchange may take. A server that limits the writing itself is
// left to that.
func (rec *recorder) limitWriting(t time.Time) {
	if rec.mode == streaming && !rec.limited {
		_ = http.NewResponseController(rec.sender).SetWriteDeadline(t)
	}
}

// abandon makes everything that still comes from the upstream go nowhere, and
// reports whether the sender has seen part of the answer.
func (rec *recorder) abandon() (begun bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	begun = rec.mode == streaming
	rec.limitWriting(time.Time{})
	rec.mode = discarding
	if rec.prefix == "" { // else the body still tells what the answer means
		rec.judged, rec.body = true, nil
	}
	return begun
}

// answer is what came back, as far as it came.
func (rec *recorder) answer() answer {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !rec.judged {
		rec.judge(nil)
	}
	return answer{status: rec.status, whole: rec.whole(), begun: rec.mode == streaming, wrong: rec.wrong}
}

// bodiless reports whether an answer is complete with its head.
func bodiless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// whole reports whether the body is as long as its header says.
func (rec *recorder) whole() bool {
	if bodiless(rec.method, rec.status) {
		return true
	}
	declared := rec.sent.Get("Content-Length")
	if declared == "" {
		return true
	}
	n, err := strconv.ParseInt(declared, 10, 64)
	return err == nil && n == rec.length
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
