package caddymodule

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// overtime is how long the chain may take to notice that its time is over. A
// chain that does not notice at all (FastCGI reads without regard to deadlines)
// is left to itself then.
const overtime = 500 * time.Millisecond

// runAside calls a chain that may outlive its time: in a goroutine of its own,
// and with variables and placeholders of its own.
func (x *exchange) runAside(ctx context.Context, cancel context.CancelFunc) result {
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
			defer x.finally() // before the answer: its sender may come again at once
			return x.call(ctx)
		}()
		ended <- res
	})
	select {
	case res := <-ended:
		maps.Copy(vars, own)
		handOver()
		return res
	case <-ctx.Done():
	}
	late := time.NewTimer(overtime)
	defer late.Stop()
	select {
	case res := <-ended:
		maps.Copy(vars, own)
		handOver()
		return res
	case <-x.exiting.Done():
		return x.giveUp(errExiting)
	case <-late.C:
		return x.giveUp(fmt.Errorf("the upstream did not answer within %v: %w", x.timeout, context.DeadlineExceeded))
	}
}

// giveUp leaves the chain to itself: nothing of what it still does reaches the
// sender, and the delivery is in doubt.
func (x *exchange) giveUp(why error) result {
	begun := x.rec.abandon()
	v := inDoubt(http.StatusGatewayTimeout, why)
	v.outcome = x.settleOnce(v.outcome)
	return result{verdict: v, answer: answer{begun: begun}}
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
