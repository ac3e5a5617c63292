package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// overtime is how long the chain may take to notice that its time is over. A
// chain that does not notice at all (FastCGI reads without regard to deadlines)
// is left to itself then.
const overtime = 500 * time.Millisecond

// exchange is one call of the rest of Caddy's chain, detached from the sender:
// it goes on when the sender hangs up, and is settled however it ends.
type exchange struct {
	next    caddyhttp.Handler
	request *http.Request
	timeout time.Duration
	success func(status int) bool
	rec     *recorder
	// exiting is closed when the process cannot wait any longer.
	exiting <-chan struct{}
	// settle writes the outcome to the store. It is called once, and once more if
	// an answer comes after the exchange was given up.
	settle func(dedupe.Outcome)

	mu      sync.Mutex
	settled dedupe.Outcome // the last one that was written; empty before that
}

// result is what the handler gets from an exchange.
type result struct {
	verdict
	answer answer
	// panicked is to be thrown again.
	panicked any
	stack    []byte
}

// run calls the chain in a goroutine of its own and waits for its end, or until
// its time or the process's is over. finally is called when the chain has really ended.
func (x *exchange) run(finally func()) result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.request.Context()), x.timeout)
	vars := varsOf(ctx)
	// Caddy reads the variables of a request after its handlers, and a chain that
	// was given up may still write to them.
	own := maps.Clone(vars)
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, own)
	ctx, handOver := ownPlaceholders(ctx, own)

	ended := make(chan result, 1)
	calls.run(func() {
		defer cancel()
		res := func() result {
			defer finally() // before the answer: its sender may come again at once
			return x.call(ctx)
		}()
		ended <- res
	})
	select {
	case res := <-ended:
		maps.Copy(vars, own)
		handOver()
		return res
	case <-x.exiting:
		return x.giveUp(errExiting)
	case <-ctx.Done():
	}
	late := time.NewTimer(overtime)
	defer late.Stop()
	select {
	case res := <-ended:
		maps.Copy(vars, own)
		handOver()
		return res
	case <-late.C:
		return x.giveUp(fmt.Errorf("the upstream did not answer within %v: %w", x.timeout, context.DeadlineExceeded))
	}
}

var errExiting = errors.New("the gateway's grace period ended before the upstream answered")

// call runs the chain to its end and settles it.
func (x *exchange) call(ctx context.Context) (res result) {
	var e ending
	func() {
		defer func() {
			if p := recover(); p != nil {
				e.panicked = p
				res.stack = debug.Stack()
			}
		}()
		e.err = x.next.ServeHTTP(x.rec, x.request.WithContext(ctx))
	}()
	e.answer = x.rec.answer()
	e.expired = ctx.Err() != nil
	if e.err != nil || e.answer.status == 0 {
		e.reached = upstreamAnswered(ctx)
	}
	res.verdict = classify(e, x.success)
	res.answer = e.answer
	if e.panicked != nil && e.panicked != http.ErrAbortHandler { //nolint:errorlint // panics are compared as thrown
		res.panicked = e.panicked
		res.err = fmt.Errorf("panic: %v", e.panicked)
	}
	res.outcome = x.settleOnce(res.outcome) // a long answer counts as it was when it overflowed
	return res
}

// settleOnce settles the exchange, unless that has happened, and returns the
// outcome that counts. An answer that comes after the exchange was given up is
// settled too: it resolves the doubt.
func (x *exchange) settleOnce(o dedupe.Outcome) dedupe.Outcome {
	x.mu.Lock()
	before := x.settled
	again := before != "" && (before != dedupe.OutcomeUnanswered || o == dedupe.OutcomeUnanswered)
	if !again {
		x.settled = o
	}
	x.mu.Unlock()
	if again {
		return before
	}
	x.settle(o)
	return o
}

// overflowed settles a long answer before it is complete, by its status and
// beginning, and reports whether it may go on to the sender.
func (x *exchange) overflowed(a answer) bool {
	v := classify(ending{answer: a}, x.success)
	x.settleOnce(v.outcome)
	return v.status == 0
}

// giveUp leaves the chain to itself: nothing of what it still does reaches the
// sender, and the delivery is in doubt.
func (x *exchange) giveUp(why error) result {
	begun := x.rec.abandon()
	v := inDoubt(http.StatusGatewayTimeout, why)
	v.outcome = x.settleOnce(v.outcome)
	return result{verdict: v, answer: answer{begun: begun}}
}

// upstreamAnswered reports whether reverse_proxy has had an answer, which it may
// have kept to itself: to an upgrade that nobody asked for, or by the routes of
// handle_response.
func upstreamAnswered(ctx context.Context) bool {
	repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return false
	}
	_, answered := repl.Get("http.reverse_proxy.upstream.latency")
	return answered
}

// ownPlaceholders gives a chain with its own variables placeholders that show
// them: those of the request are bound to the variables that it came with. What
// the chain sets is its own, too, until handOver; it must have ended then.
func ownPlaceholders(ctx context.Context, vars map[string]any) (_ context.Context, handOver func()) {
	outer, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ctx, func() {}
	}
	own, rest := caddy.NewReplacer(), outer.WithoutFile() // own has {file.*}, as far as it may
	var over atomic.Bool
	own.Map(func(key string) (any, bool) {
		name, isVar := strings.CutPrefix(key, "http.vars.")
		switch {
		case over.Load():
			return nil, false // what is left are the values that were set
		case isVar:
			return vars[name], true
		}
		return rest.Get(key)
	})
	return context.WithValue(ctx, caddy.ReplacerCtxKey, own), func() {
		over.Store(true)
		outer.Map(own.Get)
	}
}

func varsOf(ctx context.Context) map[string]any {
	vars, _ := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	if vars == nil {
		vars = make(map[string]any)
	}
	return vars
}
