package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// exchange is one call of the rest of Caddy's chain, detached from the sender:
// it goes on when the sender hangs up, and is settled however it ends.
type exchange struct {
	next    caddyhttp.Handler
	request *http.Request
	timeout time.Duration
	success func(status int) bool
	rec     recorder
	// exiting ends when the process cannot wait any longer.
	exiting context.Context
	// punctual says that the chain is known to end soon after its context; see
	// punctual.go.
	punctual bool
	// settle writes the outcome to the store. It is called once, and once more if
	// an answer comes after the exchange was given up.
	settle func(dedupe.Outcome)
	// finally is called when the chain has really ended.
	finally func()

	mu      sync.Mutex
	settled dedupe.Outcome // the last one that was written; empty before that
	// atLimit is what a long answer means that does not accept the event; empty if
	// there is none.
	atLimit dedupe.Outcome
}

// result is what the handler gets from an exchange.
type result struct {
	verdict
	answer answer
	// panicked is to be thrown again.
	panicked any
	stack    []byte
}

// run calls the chain and waits for its end or, if it is not punctual, until its
// time or the process's is over.
func (x *exchange) run() result {
	underWay.add()
	now := time.Now()
	if t, ok := x.request.Context().Deadline(); ok { // of a handler before this one
		x.timeout = min(x.timeout, t.Sub(now))
	}
	x.rec.deadline = now.Add(x.timeout)
	x.rec.overflow = x.overflowed
	x.rec.setHeader(x.punctual)
	ctx, cancel := context.WithDeadline(detached{x.exiting, x.request.Context()}, x.rec.deadline)
	if !x.punctual {
		return x.runAside(ctx, cancel)
	}
	defer cancel()
	defer x.finally()
	return x.call(ctx)
}

// detached has the values of a request's context, and ends with the process, not
// with the request.
type detached struct {
	context.Context
	values context.Context
}

// Value implements [context.Context]. Package context finds the end to follow by
// a value of its own.
func (d detached) Value(key any) any {
	if _, caddys := key.(caddy.CtxKey); !caddys {
		if v := d.Context.Value(key); v != nil {
			return v
		}
	}
	return d.values.Value(key)
}

var errExiting = errors.New("the gateway's grace period ended before the upstream answered")

// call runs the chain to its end and settles it.
func (x *exchange) call(ctx context.Context) (res result) {
	var e ending
	returned := false
	defer func() {
		if !returned { // the chain has ended its goroutine
			x.settleOnce(dedupe.OutcomeUnanswered)
		}
	}()
	func() {
		defer func() {
			if p := recover(); p != nil {
				e.panicked = p
				res.stack = debug.Stack()
			}
		}()
		e.err = x.next.ServeHTTP(&x.rec, x.request.WithContext(ctx))
	}()
	returned = true
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
	if res.outcome == dedupe.OutcomeUnanswered && x.exiting.Err() != nil {
		res.err = fmt.Errorf("%w: %w", errExiting, res.err)
	}
	if o := x.saidAtLimit(); o != "" && !e.expired {
		res.outcome = o
	}
	res.outcome = x.settleOnce(res.outcome) // if it accepted at its limit, that counts
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
	if before == "" {
		defer underWay.done()
	}
	x.settle(o)
	return o
}

// overflowed judges a long answer before it is complete, by its status and
// beginning, and reports whether it may go on to the sender, and whether it is
// settled. Only one that accepts is: anything else sets the event free, and that
// must wait until the upstream has ended, or a copy would meet it at work.
func (x *exchange) overflowed(a answer) (passes, settled bool) {
	v := classify(ending{answer: a}, x.success)
	settled = v.outcome == dedupe.OutcomeAccepted
	if settled {
		x.settleOnce(v.outcome)
	} else {
		x.mu.Lock()
		x.atLimit = v.outcome
		x.mu.Unlock()
	}
	return v.status == 0, settled
}

func (x *exchange) saidAtLimit() dedupe.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.atLimit
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
