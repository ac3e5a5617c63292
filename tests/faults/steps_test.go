package faults

import (
	"io"
	"math/rand/v2"
	"net"
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
	w    http.ResponseWriter
	r    *http.Request
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
	{"resets before the work", func(s *service) { s.breakOff("") }},
	{"resets after the work", func(s *service) { s.do(s.work); s.breakOff("") }},
	{"resets and works on", func(s *service) { s.breakOff(""); s.do(1600 * time.Millisecond) }},
	{"hangs without work", func(s *service) { s.hang() }},
	{"works and hangs", func(s *service) { s.do(s.work); s.hang() }},
	{"works far too long", func(s *service) { s.do(upstreamTimeout + 2*lease); s.accept() }},
	{"works, the answer is cut off", func(s *service) {
		s.do(s.work)
		s.breakOff("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
	}},
	{"works, the chunked answer is cut off", func(s *service) {
		s.do(s.work)
		s.breakOff("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n")
	}},
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
func (s *service) accept() {
	if s.r.Context().Err() != nil {
		return
	}
	s.u.note(func() { s.q.accepted = time.Now() })
	s.answer(http.StatusOK)
}

func (s *service) refuse(status int) {
	s.u.note(func() { s.q.refused = time.Now() })
	s.w.Header().Set("Location", "/elsewhere")
	s.answer(status)
}

func (s *service) answer(status int) {
	if s.work%2 == 0 {
		s.w.Header().Set("Connection", "close")
	}
	s.w.WriteHeader(status)
	_, _ = io.WriteString(s.w, "the upstream's answer")
}

// hang says nothing until the client has gone.
func (s *service) hang() { <-s.r.Context().Done() }

// breakOff sends what is left of an answer and breaks the connection.
func (s *service) breakOff(answer string) {
	conn, rw, err := s.w.(http.Hijacker).Hijack()
	if err != nil {
		s.u.t.Error(err)
		return
	}
	s.u.note(func() { s.q.broke = time.Now() })
	_, _ = rw.WriteString(answer)
	_ = rw.Flush()
	if answer == "" {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	conn.Close()
}
