package caddymodule

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// recording is a recorder in front of a sender that notes what it gets.
func recording(method string, limit int64, passes, settled bool) (*recorder, *httptest.ResponseRecorder, *[]int) {
	sender := httptest.NewRecorder()
	var overflowed []int
	rec := newRecorder(sender, method, limit, dedupe.ResultFirst, func(a answer) (bool, bool) {
		overflowed = append(overflowed, a.status)
		return passes, settled
	})
	return rec, sender, &overflowed
}

// newRecorder is a recorder that keeps the header of the answer apart.
func newRecorder(sender http.ResponseWriter, method string, limit int64, word dedupe.Result, overflow func(answer) (passes, settled bool)) *recorder {
	rec := &recorder{sender: sender, method: method, limit: limit, word: word, overflow: overflow}
	rec.setHeader(false)
	return rec
}

// onward lets long answers go on to the sender.
func onward(answer) (passes, settled bool) { return true, true }

// reached reports whether anything has reached the sender.
func reached(w *httptest.ResponseRecorder) bool {
	return w.Body.Len() > 0 || w.Flushed || len(w.Header()) > 0
}

func TestAnswerIsHeldUntilItIsFinished(t *testing.T) {
	rec, sender, overflowed := recording("POST", 100, true, true)
	rec.Header().Set("X-A", "1")
	rec.WriteHeader(http.StatusCreated)
	write(t, rec, "hello ")
	write(t, rec, "world")
	if err := http.NewResponseController(rec).Flush(); err != nil {
		t.Errorf("flushing a held answer: %v", err)
	}
	if reached(sender) {
		t.Error("something reached the sender before the end")
	}
	rec.finish()
	got := sender.Result()
	if body, _ := io.ReadAll(got.Body); got.StatusCode != 201 || string(body) != "hello world" || got.Header.Get("X-A") != "1" {
		t.Errorf("got %d %q %v", got.StatusCode, body, got.Header)
	}
	if got.Header.Get(resultHeader) != "first" || len(*overflowed) > 0 {
		t.Errorf("got result %q, overflow %v", got.Header.Get(resultHeader), *overflowed)
	}
}

func TestStatusIsTheFirstFinalOne(t *testing.T) {
	rec, sender, _ := recording("POST", 100, true, true)
	rec.WriteHeader(http.StatusEarlyHints)
	rec.WriteHeader(http.StatusContinue)
	if a := rec.answer(); a.status != 0 {
		t.Errorf("an interim answer counts as %d", a.status)
	}
	rec.WriteHeader(http.StatusServiceUnavailable)
	rec.WriteHeader(http.StatusOK)
	rec.finish()
	if sender.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d", sender.Code)
	}
}

func TestWriteWithoutStatusIs200(t *testing.T) {
	rec, sender, _ := recording("POST", 100, true, true)
	write(t, rec, "x")
	rec.finish()
	if a := rec.answer(); a.status != 200 || sender.Code != 200 {
		t.Errorf("got %d and %d", a.status, sender.Code)
	}
}

func TestLongAcceptedAnswerIsStreamed(t *testing.T) {
	rec, sender, overflowed := recording("POST", 10, true, true)
	rec.Header().Set("X-A", "1")
	write(t, rec, "0123456789") // the limit itself is held
	if reached(sender) || len(*overflowed) > 0 {
		t.Fatal("the limit is not held")
	}
	write(t, rec, "abc")
	if sender.Body.String() != "0123456789abc" || sender.Header().Get("X-A") != "1" || sender.Header().Get(resultHeader) != "first" {
		t.Errorf("got %q, %v", sender.Body, sender.Header())
	}
	if !rec.answer().begun {
		t.Error("the answer has begun")
	}
	write(t, rec, "def")
	if err := rec.FlushError(); err != nil || !sender.Flushed {
		t.Errorf("flushing a streamed answer: %v, %v", err, sender.Flushed)
	}
	rec.finish()
	if sender.Body.String() != "0123456789abcdef" || len(*overflowed) != 1 || (*overflowed)[0] != 200 {
		t.Errorf("got %q, overflow %v", sender.Body, *overflowed)
	}
}

// TestLongAnswerIsNotWholeBeforeItIsSettled: else its sender could come again while
// the store does not know yet.
func TestLongAnswerIsNotWholeBeforeItIsSettled(t *testing.T) {
	rec, sender, _ := recording("POST", 10, true, false)
	rec.Header().Set("Content-Length", "19")
	rec.WriteHeader(http.StatusInternalServerError)
	for _, step := range []struct{ write, reached string }{
		{"0123456789", ""}, {"abc", "0123456789"}, {"", "0123456789"}, {"def", "0123456789abc"}, {"ghi", "0123456789abcdef"}, {"", "0123456789abcdef"},
	} {
		write(t, rec, step.write)
		if got := sender.Body.String(); got != step.reached {
			t.Errorf("%q reached the sender after %q, want %q", got, step.write, step.reached)
		}
	}
	if a := rec.answer(); !a.whole || !a.begun {
		t.Errorf("got %+v", a)
	}
	rec.finish()
	if got := sender.Body.String(); got != "0123456789abcdefghi" {
		t.Errorf("the sender got %q", got)
	}
}

func TestLongRefusedAnswerIsDiscarded(t *testing.T) {
	rec, sender, overflowed := recording("POST", 10, false, false)
	rec.Header().Set("Content-Length", "13")
	rec.WriteHeader(http.StatusFound)
	write(t, rec, "0123456789a")
	write(t, rec, "bc")
	rec.finish()
	if reached(sender) {
		t.Errorf("the sender got %q %v", sender.Body, sender.Header())
	}
	a := rec.answer()
	if a.begun || !a.whole || a.status != 302 || len(*overflowed) != 1 {
		t.Errorf("got %+v, overflow %v", a, *overflowed)
	}
}

func TestHeadersOfAFailedAnswerDoNotLeak(t *testing.T) {
	rec, sender, _ := recording("POST", 100, true, true)
	rec.Header().Set("Set-Cookie", "a=b")
	rec.WriteHeader(http.StatusOK)
	write(t, rec, "half")
	if rec.abandon() {
		t.Error("nothing has begun")
	}
	respond(sender, http.StatusBadGateway, 0, "", "")
	if sender.Header().Get("Set-Cookie") != "" || sender.Body.Len() > 0 {
		t.Errorf("got %q, %v", sender.Body, sender.Header())
	}
}

func TestHeadersFromBeforeArePartOfTheAnswer(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		sender := httptest.NewRecorder()
		sender.Header().Set("Server", "Caddy")
		sender.Header().Set("X-Drop", "1")
		rec := newRecorder(sender, "POST", 10, dedupe.ResultRetry, nil)
		rec.setHeader(inPlace)
		rec.Header().Del("X-Drop")
		rec.Header().Set("X-Add", "1")
		rec.Header().Set(resultHeader, "of the upstream")
		rec.WriteHeader(204)
		rec.finish()
		want := http.Header{"Server": {"Caddy"}, "X-Add": {"1"}, resultHeader: {"retry"}}
		if !reflect.DeepEqual(sender.Header(), want) {
			t.Errorf("in place %v: got %v", inPlace, sender.Header())
		}
	}
}

// TestHeaderIsRestoredForAnAnswerOfTheGateway: as the handlers before had left it.
func TestHeaderIsRestoredForAnAnswerOfTheGateway(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		for name, answer := range map[string]func(*recorder){
			"silent": func(*recorder) {},
			"held":   func(rec *recorder) { write(t, rec, "held") },
			"too long": func(rec *recorder) {
				rec.overflow = func(answer) (passes, settled bool) { return false, false }
				write(t, rec, strings.Repeat("x", 20))
			},
			"with trailers": func(rec *recorder) {
				rec.Header().Set("Trailer", "X-Late")
				write(t, rec, "held")
				rec.Header().Set("X-Late", "1")
			},
		} {
			sender := httptest.NewRecorder()
			before := http.Header{"Server": {"Caddy"}, "X-Changed": {"1", "2"}, "X-Dropped": {"1"}, "X-Edited": {"1", "2"}, "Date": nil}
			owned := before["X-Edited"]
			maps.Copy(sender.Header(), before)
			rec := newRecorder(sender, "POST", 10, dedupe.ResultRetry, nil)
			rec.setHeader(inPlace)
			rec.Header().Set("X-Added", "1")
			rec.Header().Add("X-Changed", "3")
			rec.Header().Del("X-Dropped")
			rec.Header()["X-Edited"][1] = "3" // as Caddy's header directive does
			if rec.Header()["Date"] != nil {
				t.Errorf("in place %v: Go will write a Date", inPlace)
			}
			answer(rec)
			rec.restore()
			if !reflect.DeepEqual(sender.Header(), before) || owned[1] != "2" {
				t.Errorf("in place %v, %s: got %v", inPlace, name, sender.Header())
			}
		}
	}
}

func TestAbandonedAnswerGoesNowhere(t *testing.T) {
	rec, sender, overflowed := recording("POST", 10, true, true)
	write(t, rec, "held")
	rec.abandon()
	write(t, rec, strings.Repeat("x", 100))
	if err := rec.FlushError(); err != nil {
		t.Error(err)
	}
	rec.finish()
	if reached(sender) || len(*overflowed) > 0 {
		t.Errorf("the sender got %q, overflow %v", sender.Body, *overflowed)
	}
	if a := rec.answer(); a.status != 200 || !a.whole || a.begun {
		t.Errorf("a late answer is judged as %+v", a)
	}
}

func TestAbandonSaysWhetherTheSenderHasAPart(t *testing.T) {
	rec, sender, _ := recording("POST", 3, true, true)
	write(t, rec, "0123")
	if !rec.abandon() {
		t.Error("the sender has a part")
	}
	write(t, rec, "4567")
	if sender.Body.String() != "0123" {
		t.Errorf("got %q", sender.Body)
	}
}

func TestAnswerIsWholeIfItsLengthIsRight(t *testing.T) {
	for name, c := range map[string]struct {
		method, length string
		status         int
		body           string
		want           bool
	}{
		"no length":      {"POST", "", 200, "hello", true},
		"right":          {"POST", "5", 200, "hello", true},
		"short":          {"POST", "6", 200, "hello", false},
		"long":           {"POST", "4", 200, "hello", false},
		"empty but told": {"POST", "5", 200, "", false},
		"no number":      {"POST", "five", 200, "hello", false},
		"HEAD":           {"HEAD", "5", 200, "", true},
		"204":            {"POST", "5", 204, "", true},
		"304":            {"POST", "5", 304, "", true},
		"500 short":      {"POST", "5", 500, "he", false},
	} {
		rec, _, _ := recording(c.method, 100, true, true)
		if c.length != "" {
			rec.Header().Set("Content-Length", c.length)
		}
		rec.WriteHeader(c.status)
		write(t, rec, c.body)
		if got := rec.answer().whole; got != c.want {
			t.Errorf("%s: whole is %v", name, got)
		}
	}
}

// deadSender fails to take a body.
type deadSender struct {
	*httptest.ResponseRecorder
	tries int
}

func (d *deadSender) Write([]byte) (int, error) {
	d.tries++
	return 0, errors.New("broken pipe")
}

func TestDeadSenderDoesNotStopTheUpstream(t *testing.T) {
	sender := &deadSender{ResponseRecorder: httptest.NewRecorder()}
	rec := newRecorder(sender, "POST", 2, dedupe.ResultFirst, onward)
	rec.Header().Set("Content-Length", "9")
	for range 3 {
		write(t, rec, "abc")
	}
	if a := rec.answer(); !a.whole {
		t.Errorf("got %+v", a)
	}
	if sender.tries != 1 {
		t.Errorf("%d writes to a dead sender", sender.tries)
	}
	if err := rec.FlushError(); err != nil {
		t.Error(err)
	}
}

func TestRecorderHasNoByPass(t *testing.T) {
	var w http.ResponseWriter = newRecorder(httptest.NewRecorder(), "POST", 1, dedupe.ResultFirst, nil)
	if _, ok := w.(http.Hijacker); ok {
		t.Error("it can be hijacked")
	}
	if _, ok := w.(io.ReaderFrom); ok {
		t.Error("it has ReadFrom")
	}
	if _, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		t.Error("it can be unwrapped")
	}
	if _, ok := w.(http.Pusher); ok {
		t.Error("it can push")
	}
	if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("hijacking: %v", err)
	}
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); n != len(s) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
	}
}

// limitedSender is a sender whose time to read is limited.
type limitedSender struct {
	http.ResponseWriter
	limits []time.Time
}

func (s *limitedSender) SetWriteDeadline(t time.Time) error {
	s.limits = append(s.limits, t)
	return nil
}

// TestStreamedAnswerHasToBeReadInTime: a sender that reads slowly must not keep
// the upstream, unless the server limits it by itself.
func TestStreamedAnswerHasToBeReadInTime(t *testing.T) {
	end := time.Unix(1_800_000_000, 0)
	for limited, want := range map[bool][]time.Time{false: {end, {}}, true: nil} {
		rec, sender, _ := recording("POST", 10, true, true)
		slow := &limitedSender{ResponseWriter: sender}
		rec.sender, rec.deadline, rec.limited = slow, end, limited
		write(t, rec, "0123456789")
		if len(slow.limits) > 0 {
			t.Errorf("server limits %v: a held answer is limited to %v", limited, slow.limits)
		}
		write(t, rec, "abc")
		rec.finish()
		if !slices.Equal(slow.limits, want) {
			t.Errorf("server limits %v: limits %v, want %v", limited, slow.limits, want)
		}
	}
}
