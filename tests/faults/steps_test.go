package faults

import (
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// step is what the upstream does with one request.
type step struct {
	name string
	run  func(*service)
}

// service is one request being served.
type service struct {
	u    *upstream
	q    *request
	wire wire
	work time.Duration // how long the work takes, if the step does not say
}

// accepts is what a healthy upstream does.
var accepts = step{"accepts", func(s *service) { s.do(s.work); s.accept() }}

// failures are all the ways in which a request can go wrong.
var failures = []step{
	{"refuses, 500", func(s *service) { s.refuse(http.StatusInternalServerError) }},
	{"refuses, 404", func(s *service) { s.refuse(http.StatusNotFound) }},
	{"redirects", func(s *service) { s.refuse(http.StatusMovedPermanently) }},
	{"refuses after a while", func(s *service) { s.think(500 * time.Millisecond); s.refuse(http.StatusInternalServerError) }},
	{"resets before the work", func(s *service) { s.breakOff(beforeAll) }},
	{"resets after the work", func(s *service) { s.do(s.work); s.breakOff(beforeAll) }},
	{"resets and works on", func(s *service) { s.breakOff(beforeAll); s.do(1600 * time.Millisecond) }},
	{"hangs without work", func(s *service) { s.hang() }},
	{"works and hangs", func(s *service) { s.do(s.work); s.hang() }},
	{"works far too long", func(s *service) { s.do(upstreamTimeout + 2*lease); s.accept() }},
	{"works, the answer is cut off", func(s *service) { s.do(s.work); s.breakOff(withinBody) }},
	{"works, the chunked answer is cut off", func(s *service) { s.do(s.work); s.breakOff(withinChunks) }},
	{"works, the answer's head comes and no more", func(s *service) { s.do(s.work); s.wire.stall(http.StatusOK) }},
	{"refuses, the answer's head comes and no more", func(s *service) { s.wire.stall(http.StatusServiceUnavailable) }},
	{"accepts, and the answer says nothing", func(s *service) { s.do(s.work); s.acceptWith(http.StatusNoContent) }},
	{"accepts, hints and bits", func(s *service) { s.do(s.work); s.dribble() }},
	{"accepts at length", func(s *service) { s.do(s.work); s.answerAtLength(http.StatusOK, whole) }},
	{"accepts at length, the answer is cut off", func(s *service) { s.do(s.work); s.answerAtLength(http.StatusOK, brokenOff) }},
	{"accepts at length, the answer stalls", func(s *service) { s.do(s.work); s.answerAtLength(http.StatusOK, stalled) }},
	{"refuses at length", func(s *service) { s.answerAtLength(http.StatusInternalServerError, whole) }},
	{"refuses at length, the answer is cut off", func(s *service) { s.answerAtLength(http.StatusInternalServerError, brokenOff) }},
	{"refuses at length, the answer stalls", func(s *service) { s.answerAtLength(http.StatusInternalServerError, stalled) }},
	{"redirects at length", func(s *service) { s.answerAtLength(http.StatusFound, whole) }},
	slow, slow, slow,
}

// slow is slower than the sender waits, and quicker than the gateway does.
var slow = step{"works longer than the sender waits", func(s *service) { s.do(upstreamTimeout - lease/10); s.accept() }}

// randomSteps are what happens to an event's first requests: to half of the
// events nothing.
func randomSteps(rng *rand.Rand) (steps []step) {
	for range max(0, rng.IntN(6)-2) {
		steps = append(steps, failures[rng.IntN(len(failures))])
	}
	return steps
}

// think takes time and does nothing.
func (s *service) think(d time.Duration) { <-time.After(d) }

// do does the event's work, whatever becomes of the client meanwhile, as an old
// application does.
func (s *service) do(d time.Duration) {
	<-time.After(d)
	s.u.note(func() { s.q.worked = time.Now() })
}

// accept answers with success, if there still is somebody to answer to. Some
// answers end their connection, so that the next request dials.
func (s *service) accept() { s.acceptWith(http.StatusOK) }

func (s *service) acceptWith(status int) {
	if s.begin(&s.q.accepted) {
		s.wire.answer(status, s.work%2 == 0)
	}
}

func (s *service) refuse(status int) {
	if s.begin(&s.q.refused) {
		s.wire.answer(status, s.work%2 == 0)
	}
}

// answerAtLength sends more than the gateway holds. That much of an answer counts
// for all of it: its status is the upstream's word, however it goes on.
func (s *service) answerAtLength(status int, end ending) {
	line := &s.q.accepted
	if status >= 300 {
		line = &s.q.refused
	}
	if s.begin(line) {
		s.wire.answerAtLength(status, end)
	}
}

// begin notes that an answer that counts begins, unless nobody waits for it.
func (s *service) begin(line *time.Time) bool {
	select {
	case <-s.wire.gone():
		return false
	default:
	}
	s.u.note(func() { *line = time.Now() })
	return true
}

// dribble accepts with hints before the answer, which comes in bits.
func (s *service) dribble() {
	c, ok := s.wire.(*httpWire)
	if !ok {
		s.accept()
		return
	}
	c.w.Header().Set("Link", "</style.css>; rel=preload")
	c.w.WriteHeader(http.StatusEarlyHints)
	if !s.begin(&s.q.accepted) {
		return
	}
	c.w.WriteHeader(http.StatusAccepted)
	for range 10 {
		_, _ = io.WriteString(c.w, "a bit of the answer, ")
		_ = http.NewResponseController(c.w).Flush()
		<-time.After(20 * time.Millisecond)
	}
}

// hang says nothing until the client has gone.
func (s *service) hang() { <-s.wire.gone() }

// breakOff sends a part of an answer and breaks the connection.
func (s *service) breakOff(where cut) {
	s.u.note(func() { s.q.broke = time.Now() })
	s.wire.cutOff(where)
}
