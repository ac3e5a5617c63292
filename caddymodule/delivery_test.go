package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

const stripeRoute = `route {
	webhook_dedupe stripe {
		source $SOURCE
		secret $SECRET
	}
	upstream
}`

func TestDuplicateNeverReachesUpstream(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, counting(&calls))
	expect(t, g.send("stripe", "evt_1"), 200, "first")
	expect(t, g.send("stripe", "evt_1"), 200, "duplicate")
	expect(t, g.send("stripe", "evt_2"), 200, "first")
	if n := calls.Load(); n != 2 {
		t.Errorf("the upstream was called %d times", n)
	}
}

func TestRefusedEventIsLetThroughAgain(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error {
		if calls.Add(1) == 1 {
			w.Header().Set("X-Why", "not today")
			http.Error(w, "try later", http.StatusTeapot)
		}
		w.WriteHeader(http.StatusAccepted)
		return nil
	})
	refused := g.send("stripe", "evt_1")
	expect(t, refused, http.StatusTeapot, "first")
	if body, _ := io.ReadAll(refused.Body); string(body) != "try later\n" || refused.Header.Get("X-Why") == "" {
		t.Errorf("the upstream's refusal was changed: %q, %v", body, refused.Header)
	}
	expect(t, g.send("stripe", "evt_1"), http.StatusAccepted, "retry")
	expect(t, g.send("stripe", "evt_1"), http.StatusOK, "duplicate")
}

func TestEventInDoubtWaitsForItsLease(t *testing.T) {
	g := newGateway(t, strings.Replace(stripeRoute, "source", "wait 0\nsource", 1), func(http.ResponseWriter, *http.Request) error {
		panic(http.ErrAbortHandler)
	})
	cutOff := g.send("stripe", "evt_1")
	expect(t, cutOff, http.StatusBadGateway, "first")
	if got := cutOff.Header.Get("Retry-After"); got != "30" {
		t.Errorf("Retry-After %q is not the lease", got)
	}
	again := g.send("stripe", "evt_1")
	expect(t, again, http.StatusServiceUnavailable, "in-flight")
	if again.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.InDoubt {
		t.Errorf("the record is %v", s)
	}
}

// TestLongRedirectIsNotRelayed: a sender would follow it, however long its body.
func TestLongRedirectIsNotRelayed(t *testing.T) {
	var calls atomic.Int64
	site := strings.Replace(stripeRoute, "source", "max_response 10\nsource", 1)
	g := newGateway(t, site, answering(&calls, http.StatusFound, strings.Repeat("x", 100)))
	expect(t, g.send("stripe", "evt_1"), http.StatusBadGateway, "first")
	expect(t, g.send("stripe", "evt_1"), http.StatusBadGateway, "retry")
}

func TestDuplicateAnswerIsTheRoutesOwn(t *testing.T) {
	var calls atomic.Int64
	site := strings.Replace(stripeRoute, "source", "duplicate 202 `{\"ok\":true}` application/json\nsource", 1)
	g := newGateway(t, site, counting(&calls))
	g.send("stripe", "evt_1")
	resp := g.send("stripe", "evt_1")
	expect(t, resp, http.StatusAccepted, "duplicate")
	body, _ := io.ReadAll(resp.Body)
	if string(body) != `{"ok":true}` || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Content-Length") != "11" {
		t.Errorf("got %q with %v", body, resp.Header)
	}
}

func TestUpstreamGetsBodyAndHeadersUnchanged(t *testing.T) {
	body := "{ \"id\" : \"evt_1\",\n \"x\":\"\xff\u2028\\/\" }"
	g := newGateway(t, stripeRoute, func(w http.ResponseWriter, r *http.Request) error {
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body || r.ContentLength != int64(len(body)) || r.GetBody != nil {
			t.Errorf("got %q, length %d, GetBody %v, %v", got, r.ContentLength, r.GetBody != nil, err)
		}
		if r.Header.Get("X-Custom") != "a, b" || r.Header.Get("Stripe-Signature") == "" || r.Header.Get(resultHeader) != "first" {
			t.Errorf("got headers %v", r.Header)
		}
		if len(r.Header["Webhook-Dedupe-Evil"]) > 0 {
			t.Error("a forged header came through")
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	r := signed(t, "stripe", "evt_1", body)
	r.Header.Set("X-Custom", "a, b")
	r.Header.Set(resultHeader, "retry")
	r.Header.Set("Webhook-Dedupe-Evil", "1")
	r.ContentLength = -1 // chunked
	r.TransferEncoding = []string{"chunked"}
	expect(t, g.do(r), http.StatusNoContent, "first")
}

func TestUpstreamCannotSpeakForTheGateway(t *testing.T) {
	g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set(resultHeader, "duplicate")
		w.WriteHeader(http.StatusOK)
		return nil
	})
	resp := g.send("stripe", "evt_1")
	if got := resp.Header.Values(resultHeader); len(got) != 1 || got[0] != "first" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyNamedSuccessesAreSuccess(t *testing.T) {
	var calls atomic.Int64
	site := strings.Replace(stripeRoute, "source", "success 202 204\nsource", 1)
	g := newGateway(t, site, answering(&calls, http.StatusOK, "hello"))
	resp := g.send("stripe", "evt_1")
	expect(t, resp, http.StatusBadGateway, "first")
	if body, _ := io.ReadAll(resp.Body); len(body) > 0 {
		t.Errorf("the sender sees %q", body)
	}
	expect(t, g.send("stripe", "evt_1"), http.StatusBadGateway, "retry")
}

// TestNothingLeaksOfAnAnswerThatIsNotPassedOn: neither its header nor its body, and
// what the handlers before have set is there, however the upstream is called.
func TestNothingLeaksOfAnAnswerThatIsNotPassedOn(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter, r *http.Request) error{
		"a redirect": func(w http.ResponseWriter, r *http.Request) error {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return nil
		},
		"no success": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusPartialContent)
			_, err := io.WriteString(w, "leak")
			return err
		},
		"a long one": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusPartialContent)
			_, err := io.WriteString(w, strings.Repeat("leak", 100))
			return err
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "leak")
			panic(http.ErrAbortHandler)
		},
		"an error":  func(http.ResponseWriter, *http.Request) error { return errors.New("leak") },
		"no answer": func(http.ResponseWriter, *http.Request) error { return nil },
	} {
		bothWays(t, func(t *testing.T, punctual bool) {
			site := "header >X-Before kept\nheader +X-Changed before\n" + strings.Replace(stripeRoute, "source", "success 200\nmax_response 100\nsource", 1)
			g := newGateway(t, site, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Set-Cookie", "leak")
				w.Header().Add("X-Changed", "leak")
				return end(w, r)
			})
			if punctual {
				g.callDirectly()
			}
			resp := g.send("stripe", "evt_1")
			expect(t, resp, http.StatusBadGateway, "first")
			body, _ := io.ReadAll(resp.Body)
			if head := fmt.Sprint(resp.Header); strings.Contains(head, "leak") || len(body) > 0 || resp.Header.Get("Location") != "" {
				t.Errorf("%s: the sender got %s, %q", name, head, body)
			}
			if resp.Header.Get("X-Before") != "kept" || resp.Header.Get("X-Changed") != "before" {
				t.Errorf("%s: headers of the handlers before are lost: %v", name, resp.Header)
			}
		})
	}
}

// TestHandlersBehindChangeNoHeaderOfOthers: Caddy's header directive replaces values
// where they are, and that of Server is one for the whole process.
func TestHandlersBehindChangeNoHeaderOfOthers(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		site := "header +X-Changed before\n" + strings.NewReplacer(
			"source", "success 200\nsource", "upstream\n", "header X-Changed before leak\nheader Server Caddy leak\nupstream\n").Replace(stripeRoute)
		status := http.StatusPartialContent
		g := newGateway(t, site, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(status)
			return nil
		})
		if punctual {
			g.callDirectly()
		}
		refused := g.send("stripe", "evt_1")
		expect(t, refused, http.StatusBadGateway, "first")
		status = http.StatusOK
		var together sync.WaitGroup
		for i := range 8 {
			word := "first"
			if i == 1 {
				word = "retry"
			}
			together.Go(func() { expect(t, g.send("stripe", fmt.Sprint("evt_", i)), 200, word) })
		}
		together.Wait()
		for _, resp := range []*http.Response{refused, g.do(httptest.NewRequest(http.MethodGet, "http://gateway.test/", nil))} {
			if resp.Header.Get("Server") != "Caddy" || resp.Header.Get("X-Changed") != "before" {
				t.Errorf("status %d: got %v", resp.StatusCode, resp.Header)
			}
		}
	})
}

// TestPanicLeavesNothingOfTheAnswer: a handler before may recover and answer.
func TestPanicLeavesNothingOfTheAnswer(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		g := newGateway(t, stripeRoute, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Set-Cookie", "leak")
			panic("boom")
		})
		if punctual {
			g.callDirectly()
		}
		w := httptest.NewRecorder()
		defer func() {
			if p := recover(); p != "boom" || w.Header().Get("Set-Cookie") != "" {
				t.Errorf("recovered %v; the header is %v", p, w.Header())
			}
		}()
		g.ServeHTTP(w, signed(t, "stripe", "evt_1"))
	})
}

func TestEmptyDeliveryIsNotSentTwiceByTheTransport(t *testing.T) {
	g := newGateway(t, stableopsRoute, func(w http.ResponseWriter, r *http.Request) error {
		if _, ok := r.Header["Idempotency-Key"]; ok || len(r.Header[strings.ToLower("Idempotency-Key")]) != 1 || r.Body != http.NoBody {
			t.Errorf("got %v, body %v", r.Header, r.Body)
		}
		w.WriteHeader(http.StatusOK)
		return nil
	})
	r := signed(t, "stableops", "evt_1", "")
	r.Header.Set("Idempotency-Key", "k")
	expect(t, g.do(r), 200, "first")
}

// TestAnswerCutOffWhileStreamedIsCutOffForTheSender: it has a part of the answer,
// and must see that the rest is missing.
func TestAnswerCutOffWhileStreamedIsCutOffForTheSender(t *testing.T) {
	site := strings.Replace(stripeRoute, "source", "max_response 10\nsource", 1)
	g := newGateway(t, site, func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
		panic(http.ErrAbortHandler)
	})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // as thrown
			t.Errorf("the connection was left as if all had come: %v", p)
		}
	}()
	g.send("stripe", "evt_1")
}

// settling is a store that notes how many deliveries are under way while one is
// settled.
type settling struct {
	dedupe.Store
	underWay atomic.Int64
}

func (s *settling) Complete(ctx context.Context, key string, d dedupe.Done) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	s.underWay.Store(int64(underWay.wait(over)))
	return s.Store.Complete(ctx, key, d)
}

// TestDeliveryIsUnderWayUntilItIsSettled: else the exit could close the store
// before.
func TestDeliveryIsUnderWayUntilItIsSettled(t *testing.T) {
	store := newFakeStore()
	s := &settling{Store: store.Store}
	store.Store = s
	g := newGatewayOn(t, store, stripeRoute, counting(new(atomic.Int64)))
	expect(t, g.send("stripe", "evt_1"), 200, "first")
	if s.underWay.Load() == 0 {
		t.Error("nothing was under way while the delivery was settled")
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if n := underWay.wait(over); n != 0 {
		t.Errorf("%d deliveries are under way after the answer", n)
	}
}
