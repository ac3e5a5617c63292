package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// parsed is a request as a server reads it.
func parsed(t *testing.T, b []byte) *verify.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &verify.Request{Method: r.Method, URI: r.RequestURI, Header: r.Header, Body: body}
}

func TestEveryRequestIsGenuineAndHasTheEventID(t *testing.T) {
	for sender := range senders {
		t.Run(sender, func(t *testing.T) {
			v, err := verify.New(verify.Config{Sender: sender, Secrets: []verify.Secret{{Value: secret}}})
			if err != nil {
				t.Fatal(err)
			}
			request, err := newTemplate(sender, 1024, "X-Bench-Hold: 1s\r\n")
			if err != nil {
				t.Fatal(err)
			}
			for i, salt := range []string{newSalt(), newSalt()} {
				r := parsed(t, request.event(salt, uint64(i), time.Now()))
				if len(r.Body) != 1024 {
					t.Errorf("the body has %d bytes", len(r.Body))
				}
				result, err := v.Verify(r, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				id, err := v.EventID(r, result)
				if err != nil {
					t.Fatal(err)
				}
				if want := idOf(salt, uint64(i)); id.Text != want || id.HeaderDiffers {
					t.Errorf("the event is %q, want %q", id.Text, want)
				}
			}
		})
	}
}

func TestHistogramIsExactToAPercent(t *testing.T) {
	var h histogram
	var all []time.Duration
	for d := time.Microsecond; d < time.Second; d += d/50 + 1 {
		h.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99} {
		want := all[int(q*float64(len(all)))]
		if got := h.quantile(q); got > want || float64(got) < 0.99*float64(want) {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestSpreadIsMedianAndQuartiles(t *testing.T) {
	if got, want := spreadOf([]float64{5, 1, 3, 2, 4}), (spread{2, 3, 4}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLedgerTellsLossesFromRepeats: what a sender was promised and the upstream
// never did is lost; what it did again after that is repeated.
func TestLedgerTellsLossesFromRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		steps string // w: the upstream works, a: the sender gets 200, r: it gets 502
		want  []string
	}{
		"as it should be":        {"rwa", []string{"0", "0", "0", "0", "1"}},
		"lost":                   {"a", []string{"1", "0", "0", "0", "0"}},
		"promised too early":     {"aw", []string{"0", "0", "0", "0", "0"}},
		"repeated":               {"waw", []string{"0", "1", "1", "0", "0"}},
		"in doubt, and repeated": {"wrwa", []string{"0", "0", "1", "0", "1"}},
		"never acknowledged":     {"wrr", []string{"0", "0", "0", "1", "2"}},
	} {
		l := &faultLedger{events: make(map[string]*faultEvent)}
		for _, step := range c.steps {
			switch step {
			case 'w':
				l.work("evt")
			case 'a':
				l.answered("evt", 200)
			case 'r':
				l.answered("evt", 502)
			}
		}
		if got := l.cells(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
