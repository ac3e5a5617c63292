package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// answer is what the chain wrote.
type answer struct {
	// status is the final one; 0 if there was none.
	status int
	// whole says that the body is as long as its header promised.
	whole bool
	// begun says that the sender has got a part of it already.
	begun bool
	// wrong says that the body does not begin as that of a success must.
	wrong bool
}

// ending is how the rest of Caddy's chain came back.
type ending struct {
	answer   answer
	err      error
	panicked any
	// expired says that the time for the upstream was over.
	expired bool
	// reached says, where no answer came through, that an upstream has answered
	// Caddy's proxy all the same.
	reached bool
}

// verdict is what an ending means.
type verdict struct {
	outcome dedupe.Outcome
	// status is the gateway's own answer to the sender; 0 means that the
	// upstream's answer goes to the sender as it is.
	status int
	// err says why, where the answer is the gateway's own.
	err error
}

// statusClientClosed is what Caddy's proxy answers when its client has gone.
const statusClientClosed = 499

// classify decides what became of a delivery. Only a complete answer that the
// route calls a success counts as accepted; only what surely never left counts
// as not sent; whatever is neither that nor a complete answer is in doubt.
func classify(e ending, success func(status int) bool) verdict {
	switch {
	case e.panicked != nil:
		return inDoubt(http.StatusBadGateway, errCutOff)
	case e.err != nil:
		return classifyError(e)
	case e.answer.status == 0 && e.expired:
		return inDoubt(http.StatusGatewayTimeout, context.DeadlineExceeded)
	case e.answer.status == 0 && e.reached:
		return inDoubt(http.StatusBadGateway, errSwallowed)
	case e.answer.status == 0:
		return verdict{dedupe.OutcomeNotSent, http.StatusBadGateway, errUnhandled}
	case e.answer.status == statusClientClosed && e.expired:
		return inDoubt(http.StatusGatewayTimeout, context.DeadlineExceeded)
	case e.answer.status == statusClientClosed, e.answer.status < 200:
		return inDoubt(http.StatusBadGateway, fmt.Errorf("the upstream call was cancelled (status %d)", e.answer.status))
	case !e.answer.whole:
		return inDoubt(http.StatusBadGateway, errCutOff)
	case success(e.answer.status) && !e.answer.wrong:
		return verdict{outcome: dedupe.OutcomeAccepted}
	case e.answer.status >= 400:
		return verdict{outcome: dedupe.OutcomeRefused}
	case success(e.answer.status):
		return verdict{dedupe.OutcomeRefused, http.StatusBadGateway, fmt.Errorf("the upstream answered %d, and the body is not that of a success", e.answer.status)}
	}
	// A sender would follow a redirect with a GET that has no body, and take any
	// other 2xx for success.
	return verdict{dedupe.OutcomeRefused, http.StatusBadGateway, fmt.Errorf("the upstream answered %d, which is no success", e.answer.status)}
}

var (
	errUnhandled = errors.New("no handler answered the request")
	errCutOff    = errors.New("the upstream's answer was cut off")
	errSwallowed = errors.New("the upstream answered, and no answer came through")
)

func classifyError(e ending) verdict {
	var handlerErr caddyhttp.HandlerError
	isHandlerErr := errors.As(e.err, &handlerErr)
	var dialErr reverseproxy.DialError
	switch {
	case e.reached && (errors.As(e.err, &dialErr) || noUpstream(handlerErr)): // another upstream, before
		return inDoubt(http.StatusBadGateway, e.err)
	case errors.As(e.err, &dialErr):
		return verdict{dedupe.OutcomeNotSent, http.StatusBadGateway, e.err}
	case isHandlerErr && handlerErr.StatusCode == http.StatusServiceUnavailable && noUpstream(handlerErr):
		return verdict{dedupe.OutcomeNotSent, http.StatusServiceUnavailable, e.err}
	case e.expired, errors.Is(e.err, context.DeadlineExceeded), isHandlerErr && handlerErr.StatusCode == http.StatusGatewayTimeout:
		return inDoubt(http.StatusGatewayTimeout, e.err)
	}
	return inDoubt(http.StatusBadGateway, e.err)
}

// noUpstream recognises Caddy's "no upstreams available", whose error value is
// not exported.
func noUpstream(err caddyhttp.HandlerError) bool {
	return err.Err != nil && strings.Contains(err.Err.Error(), "no upstreams available")
}

func inDoubt(status int, err error) verdict {
	return verdict{dedupe.OutcomeUnanswered, status, err}
}
