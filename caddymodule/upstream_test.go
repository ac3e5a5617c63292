package caddymodule

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// call is an exchange under test, with the outcomes that it settled.
type call struct {
	*exchange
	sender *httptest.ResponseRecorder
	vars   map[string]any
	hangUp context.CancelFunc
	ended  chan struct{} // closed by finally

	mu       sync.Mutex
	outcomes []dedupe.Outcome
	settled  chan dedupe.Outcome
}

func newCall(timeout time.Duration, limit int64, next caddyhttp.HandlerFunc) *call {
	c := &call{
		sender: httptest.NewRecorder(), vars: map[string]any{"before": 1},
		ended: make(chan struct{}), settled: make(chan dedupe.Outcome, 10),
	}
	ctx, hangUp := context.WithCancel(context.WithValue(context.Background(), caddyhttp.VarsCtxKey, c.vars))
	c.hangUp = hangUp
	c.exchange = &exchange{
		next: next, finally: func() { close(c.ended) }, request: httptest.NewRequest("POST", "/", strings.NewReader("{}")).WithContext(ctx),
		timeout: timeout, success: any2xx, settle: c.note, exiting: context.Background(),
		rec: recorder{sender: c.sender, method: "POST", limit: limit, word: dedupe.ResultFirst},
	}
	return c
}

// bothWays runs a test with a chain that is punctual, and with one that is called
// aside because it may not be.
func bothWays(t *testing.T, test func(t *testing.T, punctual bool)) {
	t.Helper()
	t.Run("punctual", func(t *testing.T) { test(t, true) })
	t.Run("aside", func(t *testing.T) { test(t, false) })
}

func (c *call) note(o dedupe.Outcome) {
	c.mu.Lock()
	c.outcomes = append(c.outcomes, o)
	c.mu.Unlock()
	c.settled <- o
}

// expectOutcomes checks what was settled, in its order.
func (c *call) expectOutcomes(t *testing.T, want ...dedupe.Outcome) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.outcomes, want) {
		t.Errorf("settled %q, want %q", c.outcomes, want)
	}
}

func TestEveryEndingIsSettledOnce(t *testing.T) {
	for name, c := range map[string]struct {
		next caddyhttp.HandlerFunc
		want dedupe.Outcome
	}{
		"accepted": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(200)
			return nil
		}, dedupe.OutcomeAccepted},
		"refused": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(500)
			return nil
		}, dedupe.OutcomeRefused},
		"silent": {func(http.ResponseWriter, *http.Request) error { return nil }, dedupe.OutcomeNotSent},
		"error":  {func(http.ResponseWriter, *http.Request) error { return errors.New("x") }, dedupe.OutcomeUnanswered},
		"abort":  {func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, dedupe.OutcomeUnanswered},
		"panic":  {func(http.ResponseWriter, *http.Request) error { panic("boom") }, dedupe.OutcomeUnanswered},
		"long and accepted": {func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, strings.Repeat("x", 20))
			return err
		}, dedupe.OutcomeAccepted},
		"long and refused": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(400)
			_, err := io.WriteString(w, strings.Repeat("x", 20))
			return err
		}, dedupe.OutcomeRefused},
		"long and cut off": {func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, strings.Repeat("x", 20))
			panic(http.ErrAbortHandler)
		}, dedupe.OutcomeAccepted},
		"long, refused and cut off": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, strings.Repeat("x", 20))
			panic(http.ErrAbortHandler)
		}, dedupe.OutcomeRefused},
		"long and redirecting": {func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(302)
			_, err := io.WriteString(w, strings.Repeat("x", 20))
			return err
		}, dedupe.OutcomeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, punctual bool) {
				call := newCall(patience, 10, c.next)
				call.punctual = punctual
				res := call.run()
				call.expectOutcomes(t, c.want)
				if res.outcome != c.want {
					t.Errorf("the result says %q", res.outcome)
				}
				select {
				case <-call.ended:
				default:
					t.Error("the answer came before finally")
				}
			})
		})
	}
}

func TestPanicIsHandedOverWithItsStack(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		c := newCall(patience, 10, func(http.ResponseWriter, *http.Request) error { panic("boom") })
		c.punctual = punctual
		res := c.run()
		if res.panicked != "boom" || !strings.Contains(string(res.stack), "upstream_test.go") {
			t.Errorf("got %v with the stack %s", res.panicked, res.stack)
		}
		c = newCall(patience, 10, func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
		c.punctual = punctual
		if res := c.run(); res.panicked != nil || res.status != http.StatusBadGateway {
			t.Errorf("an abort gave %+v", res)
		}
	})
}

func TestChainThatExitsItsGoroutineIsInDoubt(t *testing.T) {
	t.Parallel()
	exits := func(http.ResponseWriter, *http.Request) error {
		runtime.Goexit()
		return nil
	}
	c := newCall(10*time.Millisecond, 10, exits)
	res := c.run()
	if res.status != http.StatusGatewayTimeout {
		t.Errorf("got %+v", res)
	}
	receive(t, c.ended, "finally")
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)

	c = newCall(patience, 10, exits)
	c.punctual = true
	go c.run() // it is the handler's goroutine that ends
	receive(t, c.ended, "finally")
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)
}

func TestUpstreamIsNotCancelledWithItsSender(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		called, goOn := make(chan struct{}), make(chan struct{})
		c := newCall(patience, 10, func(w http.ResponseWriter, r *http.Request) error {
			close(called)
			<-goOn
			if err := r.Context().Err(); err != nil {
				t.Errorf("the sender's hanging up came through: %v", err)
			}
			w.WriteHeader(200)
			return nil
		})
		c.punctual = punctual
		go func() {
			<-called
			c.hangUp()
			close(goOn)
		}()
		c.run()
		c.expectOutcomes(t, dedupe.OutcomeAccepted)
	})
}

func TestUpstreamHasADeadline(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		c := newCall(10*time.Millisecond, 10, func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		})
		c.punctual = punctual
		res := c.run()
		if res.status != http.StatusGatewayTimeout || !errors.Is(res.err, context.DeadlineExceeded) {
			t.Errorf("got %+v", res.verdict)
		}
		c.expectOutcomes(t, dedupe.OutcomeUnanswered)
	})
}

// TestTimeOfAHandlerBeforeHolds: such as another one of this package.
func TestTimeOfAHandlerBeforeHolds(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		c := newCall(time.Hour, 10, func(_ http.ResponseWriter, r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		})
		c.punctual = punctual
		ctx, cancel := context.WithTimeout(c.request.Context(), 10*time.Millisecond)
		defer cancel()
		c.request = c.request.WithContext(ctx)
		if res := c.run(); res.status != http.StatusGatewayTimeout || !errors.Is(res.err, context.DeadlineExceeded) {
			t.Errorf("got %+v", res.verdict)
		}
		c.expectOutcomes(t, dedupe.OutcomeUnanswered)
	})
}

// TestContextOfTheChainEndsWithIt: for whatever the chain has left behind.
func TestContextOfTheChainEndsWithIt(t *testing.T) {
	bothWays(t, func(t *testing.T, punctual bool) {
		left := make(chan context.Context, 1)
		c := newCall(patience, 10, func(_ http.ResponseWriter, r *http.Request) error {
			left <- r.Context()
			return nil
		})
		c.punctual = punctual
		c.run()
		receive(t, (<-left).Done(), "the end of the context")
	})
}

// stubborn is a chain that takes no notice of its context until it is told.
func stubborn(goOn <-chan struct{}, status int) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		<-goOn
		w.WriteHeader(status)
		_, err := io.WriteString(w, strings.Repeat("x", 20))
		return err
	}
}

// TestHeaderOfAChainThatWasGivenUpGoesNowhere: neither what it had written, nor what
// it writes beside the answer of the gateway's own.
func TestHeaderOfAChainThatWasGivenUpGoesNowhere(t *testing.T) {
	goOn := make(chan struct{})
	c := newCall(time.Millisecond, 10, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Early", "1")
		<-goOn
		w.Header().Set("X-Late", "1")
		return nil
	})
	c.sender.Header().Set("Server", "Caddy")
	c.run()
	c.rec.restore()
	close(goOn)
	respond(c.sender, http.StatusGatewayTimeout, 0, "", "")
	receive(t, c.ended, "finally")
	h := c.sender.Header()
	if h.Get("Server") != "Caddy" || h.Get("X-Early") != "" || h.Get("X-Late") != "" {
		t.Errorf("the sender's header is %v", h)
	}
}

func TestChainThatIgnoresItsContextIsGivenUp(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	c := newCall(10*time.Millisecond, 10, stubborn(goOn, 200))
	res := c.run()
	if res.status != http.StatusGatewayTimeout || res.answer.begun {
		t.Errorf("got %+v", res)
	}
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)
	select {
	case <-c.ended:
		t.Error("finally before the end")
	default:
	}
	close(goOn)
	receive(t, c.ended, "the chain to end")
	c.expectOutcomes(t, dedupe.OutcomeUnanswered, dedupe.OutcomeAccepted)
	if reached(c.sender) {
		t.Errorf("the late answer reached the sender: %q", c.sender.Body)
	}
}

func TestLateRefusalResolvesTheDoubt(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	c := newCall(10*time.Millisecond, 100, stubborn(goOn, 500))
	c.run()
	close(goOn)
	receive(t, c.ended, "the chain to end")
	c.expectOutcomes(t, dedupe.OutcomeUnanswered, dedupe.OutcomeRefused)
}

func TestLateFailureLeavesTheDoubt(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	c := newCall(10*time.Millisecond, 100, func(http.ResponseWriter, *http.Request) error {
		<-goOn
		panic(http.ErrAbortHandler)
	})
	c.run()
	close(goOn)
	receive(t, c.ended, "the chain to end")
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)
}

func TestStreamThatTakesTooLongStaysAccepted(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	c := newCall(10*time.Millisecond, 10, func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, strings.Repeat("x", 20))
		<-goOn
		return err
	})
	res := c.run()
	if !res.answer.begun || res.outcome != dedupe.OutcomeAccepted {
		t.Errorf("got %+v", res)
	}
	close(goOn)
	receive(t, c.ended, "the chain to end")
	c.expectOutcomes(t, dedupe.OutcomeAccepted)
}

// TestLongRefusalCountsWhenItHasEnded: it sets the event free, and a copy must not
// reach the upstream while that is still at work.
func TestLongRefusalCountsWhenItHasEnded(t *testing.T) {
	for _, status := range []int{302, 409, 500} {
		bothWays(t, func(t *testing.T, punctual bool) {
			var c *call
			c = newCall(patience, 10, func(w http.ResponseWriter, _ *http.Request) error {
				w.WriteHeader(status)
				_, err := io.WriteString(w, strings.Repeat("x", 20))
				c.expectOutcomes(t)
				return err
			})
			c.punctual = punctual
			c.settle = func(o dedupe.Outcome) {
				if c.sender.Body.Len() >= 20 {
					t.Error("the sender has all of the answer before it is settled")
				}
				c.note(o)
			}
			c.run()
			c.expectOutcomes(t, dedupe.OutcomeRefused)
		})
	}
}

// TestLongRefusalWithoutEndIsInDoubt: the upstream has said no, and may be at work.
func TestLongRefusalWithoutEndIsInDoubt(t *testing.T) {
	t.Parallel()
	for _, status := range []int{302, 500} {
		bothWays(t, func(t *testing.T, punctual bool) {
			c := newCall(10*time.Millisecond, 10, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Length", "30")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.Repeat("x", 20))
				<-r.Context().Done()
				return nil
			})
			c.punctual = punctual
			if res := c.run(); res.outcome != dedupe.OutcomeUnanswered {
				t.Errorf("got %+v", res)
			}
			c.expectOutcomes(t, dedupe.OutcomeUnanswered)
		})
	}
}

// TestLongRefusalOfAChainThatWasGivenUp: it sets the event free when the chain has
// ended after all, if it was whole then.
func TestLongRefusalOfAChainThatWasGivenUp(t *testing.T) {
	t.Parallel()
	for length, late := range map[string][]dedupe.Outcome{
		"20": {dedupe.OutcomeUnanswered, dedupe.OutcomeRefused},
		"30": {dedupe.OutcomeUnanswered},
	} {
		t.Run(length, func(t *testing.T) {
			goOn := make(chan struct{})
			c := newCall(10*time.Millisecond, 10, func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Length", length)
				w.WriteHeader(500)
				_, err := io.WriteString(w, strings.Repeat("x", 20))
				<-goOn
				return err
			})
			if res := c.run(); !res.answer.begun || res.outcome != dedupe.OutcomeUnanswered {
				t.Errorf("got %+v", res)
			}
			c.expectOutcomes(t, dedupe.OutcomeUnanswered)
			close(goOn)
			receive(t, c.ended, "the chain to end")
			c.expectOutcomes(t, late...)
		})
	}
}

func TestLongAnswerIsSettledBeforeItsFirstByteIsSent(t *testing.T) {
	c := newCall(patience, 10, func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, strings.Repeat("x", 20))
		return err
	})
	c.settle = func(o dedupe.Outcome) {
		if reached(c.sender) {
			t.Error("sent before it was settled")
		}
		c.note(o)
	}
	c.run()
	if !reached(c.sender) {
		t.Error("nothing was sent")
	}
}

func TestVariablesOfTheChainComeBackAtItsEndOnly(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, punctual bool) {
		c := newCall(patience, 10, func(_ http.ResponseWriter, r *http.Request) error {
			if caddyhttp.GetVar(r.Context(), "before") != 1 {
				t.Error("the chain does not see the variables")
			}
			caddyhttp.SetVar(r.Context(), "set", 2)
			return nil
		})
		c.punctual = punctual
		c.run()
		if c.vars["set"] != 2 {
			t.Error("the variable did not come back")
		}
	})

	goOn := make(chan struct{})
	c := newCall(10*time.Millisecond, 10, func(_ http.ResponseWriter, r *http.Request) error {
		<-goOn
		caddyhttp.SetVar(r.Context(), "set", 2)
		return nil
	})
	c.run()
	close(goOn)
	c.vars["own"] = 3 // a race, if the chain had the same map
	receive(t, c.ended, "the chain to end")
	if _, ok := c.vars["set"]; ok {
		t.Error("a chain that was given up changed the request's variables")
	}
}

// TestPlaceholdersOfTheChainComeBackAtItsEndOnly: as those of reverse_proxy do,
// for logs and handlers before the gateway.
func TestPlaceholdersOfTheChainComeBackAtItsEndOnly(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"ends": patience, "given up": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			c := newCall(timeout, 10, func(_ http.ResponseWriter, r *http.Request) error {
				if timeout < patience {
					<-goOn
				}
				repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
				if v, _ := repl.Get("before"); v != 1 {
					t.Errorf("the chain sees %v", v)
				}
				repl.Set("set", 2)
				return nil
			})
			outer := caddy.NewReplacer()
			outer.Set("before", 1)
			c.request = c.request.WithContext(context.WithValue(c.request.Context(), caddy.ReplacerCtxKey, outer))
			c.run()
			close(goOn)
			receive(t, c.ended, "the chain to end")
			v, known := outer.Get("set")
			if known != (timeout == patience) || known && v != 2 {
				t.Errorf("what the chain set is %v outside, %t", v, known)
			}
			if v, known := outer.Get("nothing"); known {
				t.Errorf("what nobody set is %v", v)
			}
		})
	}
}

// TestExchangeEndsWithTheProcess: however long its own time is. What comes after
// all is still settled.
func TestExchangeEndsWithTheProcess(t *testing.T) {
	goOn := make(chan struct{})
	c := newCall(time.Hour, 1<<20, func(w http.ResponseWriter, _ *http.Request) error {
		<-goOn
		w.WriteHeader(200)
		return nil
	})
	exiting, end := context.WithCancel(context.Background())
	c.exiting = exiting
	end()
	res := c.run()
	if res.outcome != dedupe.OutcomeUnanswered || res.verdict.status != http.StatusGatewayTimeout || !errors.Is(res.err, errExiting) {
		t.Errorf("got %+v", res.verdict)
	}
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)
	close(goOn)
	<-c.ended
	c.expectOutcomes(t, dedupe.OutcomeUnanswered, dedupe.OutcomeAccepted)
}

// TestPunctualChainEndsWithTheProcess: it is not left to itself, but told.
func TestPunctualChainEndsWithTheProcess(t *testing.T) {
	exiting, end := context.WithCancel(context.Background())
	c := newCall(time.Hour, 10, func(w http.ResponseWriter, r *http.Request) error {
		end()
		<-r.Context().Done()
		w.WriteHeader(statusClientClosed) // as Caddy's proxy does
		return nil
	})
	c.exiting, c.punctual = exiting, true
	res := c.run()
	if res.verdict.status != http.StatusGatewayTimeout || !errors.Is(res.err, errExiting) {
		t.Errorf("got %+v", res.verdict)
	}
	c.expectOutcomes(t, dedupe.OutcomeUnanswered)
}
