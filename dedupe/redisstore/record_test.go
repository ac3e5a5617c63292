package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func TestRecordsReadBackAsTheyWereWritten(t *testing.T) {
	h := dedupe.Hold{Token: "tok-en_1", Lease: 30 * time.Second, TTL: time.Hour}
	left := time.Hour.Milliseconds() - 10_000 // written 10s ago
	for letter, state := range map[string]dedupe.State{"I": dedupe.InFlight, "D": dedupe.InDoubt} {
		got, err := decode(encode(letter, h.Token, 3, true, h), left)
		want := dedupe.Record{
			State: state, Token: h.Token, Attempt: 3, Doubted: true,
			LeaseLeft: 20 * time.Second, Left: time.Hour - 10*time.Second,
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", letter, got, err, want)
		}
	}
	got, err := decode(encode("F", "", 2, false, h), left)
	want := dedupe.Record{State: dedupe.Failed, Attempt: 2, Left: time.Hour - 10*time.Second}
	if err != nil || got != want {
		t.Errorf("failed: got %+v, %v, want %+v", got, err, want)
	}
	for _, mark := range []uint16{0, 7, dedupe.MaxMark} {
		got, err := decode(encodeMark(mark), 5000)
		if err != nil || got != (dedupe.Record{State: dedupe.Completed, Mark: mark, Left: 5 * time.Second}) {
			t.Errorf("done with mark %d: got %+v, %v", mark, got, err)
		}
	}
}

func TestLeaseIsNeverLongerThanItWasMade(t *testing.T) {
	h := dedupe.Hold{Token: "t", Lease: 30 * time.Second, TTL: time.Hour}
	value := encode("I", "t", 1, false, h)
	for left, want := range map[time.Duration]time.Duration{
		2 * time.Hour:                 h.Lease, // another record's PTTL, written between GET and PTTL
		time.Hour:                     h.Lease,
		time.Hour - 29999*1e6:         time.Millisecond,
		time.Hour - 30*time.Second:    0,
		time.Hour - 31*time.Second:    0,
		time.Millisecond:              0,
		time.Hour - time.Second - 1e6: 29*time.Second - time.Millisecond,
	} {
		r, err := decode(value, left.Milliseconds())
		if err != nil || r.LeaseLeft != want {
			t.Errorf("%v left: lease %v, %v, want %v", left, r.LeaseLeft, err, want)
		}
	}
}

func TestUnreadableRecordIsCorruptAndNeverDone(t *testing.T) {
	for _, value := range []string{
		"", " ", "-1", "+1", "01", "00", "1 ", " 1", "1.0", "1e3", "0x1", "10000", "65536", "99999999999999999999",
		"true", "done", "OK", "1\n", "１",
		"I", "I:t", "I:t:1:0:1", "I:t:1:0:1:1:1", "X:t:1:0:1:1", "i:t:1:0:1:1", ":t:1:0:1:1",
		"I:t:x:0:1:1", "I:t:-1:0:1:1", "I:t:1:2:1:1", "I:t:1::1:1", "I:t:1:0:x:1", "I:t:1:0:1:-1",
		"I:t:99999999999:0:1:1", "I:t:1:0:99999999999999999999:1", `{"state":"done"}`, strings.Repeat("9", 1<<16),
	} {
		r, err := decode(value, 1000)
		if !errors.Is(err, dedupe.ErrCorrupt) || r != (dedupe.Record{}) {
			t.Errorf("%.30q reads as %+v, %v", value, r, err)
		}
	}
	for _, value := range []string{"1", "I:t:1:0:1000:1000"} {
		if r, err := decode(value, -1); !errors.Is(err, dedupe.ErrCorrupt) || r != (dedupe.Record{}) {
			t.Errorf("%q that never expires reads as %+v, %v", value, r, err)
		}
	}
}

func TestTimesNeverBecomeZero(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "1", 0: "1", time.Microsecond: "1", 2 * time.Second: "2000"} {
		if got := millis(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func FuzzDecodeNeverInventsAState(f *testing.F) {
	f.Add("9999", int64(1))
	f.Add("I:t:1:0:1000:2000", int64(1500))
	f.Add("F::1:1:1000:2000", int64(0))
	f.Fuzz(func(t *testing.T, value string, left int64) {
		r, err := decode(value, left)
		if err != nil {
			if r != (dedupe.Record{}) {
				t.Fatalf("%q: a record beside an error: %+v", value, r)
			}
			return
		}
		if r.State == dedupe.Absent || r.State == dedupe.Completed && value != encodeMark(r.Mark) {
			t.Fatalf("%q reads as %+v", value, r)
		}
	})
}
