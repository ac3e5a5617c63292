package caddymodule

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestAllowanceIsNeverExceeded(t *testing.T) {
	a := newAllowance(100)
	var most, all sync.WaitGroup
	most.Add(1)
	got := make(chan int64, 300)
	for range 300 {
		all.Go(func() {
			most.Wait()
			if a.take(1) == nil {
				got <- 1
			}
		})
	}
	most.Done()
	all.Wait()
	if n := len(got); n > 100 {
		t.Errorf("%d of 100 were given out", n)
	}
	a.give(int64(len(got)))
	if err := a.take(100); err != nil {
		t.Errorf("what was given back cannot be taken: %v", err)
	}
	if err := a.take(1); !errors.Is(err, errNoRoom) {
		t.Errorf("got %v, want no room", err)
	}
	a.allow(101)
	if err := a.take(1); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
}

func TestRoomIsGivenBackOnce(t *testing.T) {
	a := newAllowance(10)
	r := room{from: a}
	for _, n := range []int64{4, 6} {
		if err := r.take(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.take(1); !errors.Is(err, errNoRoom) {
		t.Fatalf("got %v, want no room", err)
	}
	r.giveBack()
	r.giveBack()
	if left := a.used.Load(); left != 0 {
		t.Errorf("%d are taken after everything was given back", left)
	}
}

// TestBodyTakesRoomForWhatItHolds, whatever its length and whatever it promised.
func TestBodyTakesRoomForWhatItHolds(t *testing.T) {
	for _, size := range []int{1, firstRead - 1, firstRead, firstRead + 1, 1 << 20} {
		for _, told := range []bool{true, false} {
			r := room{from: newAllowance(1 << 30)}
			length := int64(-1)
			if told {
				length = int64(size)
			}
			body, err := readBody(bodyOf(strings.NewReader(strings.Repeat("x", size)), length), 1<<20, r.take)
			if err != nil || len(body) != size {
				t.Fatalf("%d bytes, told %v: got %d, %v", size, told, len(body), err)
			}
			if held := r.held.Load(); held != int64(cap(body)) {
				t.Errorf("%d bytes, told %v: took %d for a buffer of %d", size, told, held, cap(body))
			}
		}
	}
}

func TestBodyWithoutRoomIsAskedToComeAgain(t *testing.T) {
	r := room{from: newAllowance(firstRead)}
	body, err := readBody(bodyOf(strings.NewReader(strings.Repeat("x", 2*firstRead)), -1), 1<<20, r.take)
	if !errors.Is(err, errNoRoom) || len(body) != firstRead {
		t.Fatalf("got %d bytes, %v", len(body), err)
	}
	ref := unread(err)
	if ref.status != http.StatusServiceUnavailable || ref.reason != reasonMemory || ref.retryAfter <= 0 {
		t.Errorf("refused with %+v", ref)
	}
	req := bodyOf(io.MultiReader(strings.NewReader("rest")), -1)
	resumeBody(req, body)
	if all, _ := io.ReadAll(req.Body); len(all) != firstRead+4 {
		t.Errorf("a request that passes unexamined has %d bytes", len(all))
	}
}
