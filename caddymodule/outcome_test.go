package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

func whole(status int) ending { return ending{answer: answer{status: status, whole: true}} }

func failing(err error) ending { return ending{err: err} }

// proxyError is an error as Caddy's proxy returns it.
func proxyError(status int, err error) ending { return failing(caddyhttp.Error(status, err)) }

func any2xx(status int) bool { return status/100 == 2 }

func TestOutcomeOfEveryEnding(t *testing.T) {
	const (
		accepted = dedupe.OutcomeAccepted
		refused  = dedupe.OutcomeRefused
		notSent  = dedupe.OutcomeNotSent
		doubt    = dedupe.OutcomeUnanswered
	)
	// A dial error's own error cannot be set from outside of Caddy.
	dial := reverseproxy.DialError{}
	for name, c := range map[string]struct {
		ending ending
		want   dedupe.Outcome
		status int // of the gateway's own answer
	}{
		"200":                      {whole(200), accepted, 0},
		"201":                      {whole(201), accepted, 0},
		"204":                      {whole(204), accepted, 0},
		"299":                      {whole(299), accepted, 0},
		"300":                      {whole(300), refused, 502},
		"302":                      {whole(302), refused, 502},
		"304":                      {whole(304), refused, 502},
		"399":                      {whole(399), refused, 502},
		"400":                      {whole(400), refused, 0},
		"404":                      {whole(404), refused, 0},
		"409":                      {whole(409), refused, 0},
		"500":                      {whole(500), refused, 0},
		"503":                      {whole(503), refused, 0},
		"504 of the upstream":      {whole(504), refused, 0},
		"client closed":            {whole(499), doubt, 502},
		"cancelled at its end":     {ending{answer: answer{status: 499, whole: true}, expired: true}, doubt, 504},
		"switching protocols":      {whole(101), doubt, 502},
		"only an interim answer":   {whole(103), doubt, 502},
		"200 of a failure":         {ending{answer: answer{status: 200, whole: true, wrong: true}}, refused, 502},
		"302 of a failure":         {ending{answer: answer{status: 302, whole: true, wrong: true}}, refused, 502},
		"500 of a failure":         {ending{answer: answer{status: 500, whole: true, wrong: true}}, refused, 0},
		"cut off 200 of a failure": {ending{answer: answer{status: 200, wrong: true}}, doubt, 502},
		"cut off 200":              {ending{answer: answer{status: 200}}, doubt, 502},
		"cut off 500":              {ending{answer: answer{status: 500}}, doubt, 502},
		"cut off and begun":        {ending{answer: answer{status: 200, begun: true}}, doubt, 502},
		"200 in the last moment":   {ending{answer: answer{status: 200, whole: true}, expired: true}, accepted, 0},
		"nobody answered":          {ending{answer: answer{whole: true}}, notSent, 502},
		"answer kept back":         {ending{answer: answer{whole: true}, reached: true}, doubt, 502},
		"dial error after another": {ending{err: caddyhttp.Error(502, dial), reached: true}, doubt, 502},
		"no upstream any more":     {ending{err: caddyhttp.Error(503, errors.New("no upstreams available")), reached: true}, doubt, 502},
		"silent when time is over": {ending{answer: answer{whole: true}, expired: true}, doubt, 504},
		"dial error":               {proxyError(502, dial), notSent, 502},
		"dial error, wrapped":      {failing(fmt.Errorf("trying: %w", caddyhttp.Error(502, dial))), notSent, 502},
		"dial time-out":            {proxyError(504, dial), notSent, 502},
		"dial error, time over":    {ending{err: caddyhttp.Error(502, dial), expired: true}, notSent, 502},
		"no upstream":              {proxyError(503, errors.New("no upstreams available")), notSent, 503},
		"another 503":              {proxyError(503, errors.New("circuit open")), doubt, 502},
		"503 without a cause":      {failing(caddyhttp.HandlerError{StatusCode: 503}), doubt, 502},
		"not a 503":                {proxyError(500, errors.New("no upstreams available")), doubt, 502},
		"reset":                    {proxyError(502, syscall.ECONNRESET), doubt, 502},
		"header time-out":          {proxyError(504, errors.New("timeout awaiting response headers")), doubt, 504},
		"deadline":                 {failing(fmt.Errorf("reading: %w", context.DeadlineExceeded)), doubt, 504},
		"any error, time over":     {ending{err: errors.New("x"), expired: true}, doubt, 504},
		"cancelled":                {proxyError(499, context.Canceled), doubt, 502},
		"plain error":              {failing(errors.New("x")), doubt, 502},
		"404 as an error":          {proxyError(404, errors.New("x")), doubt, 502},
		"error after a 200":        {ending{answer: answer{status: 200, whole: true}, err: errors.New("x")}, doubt, 502},
		"abort":                    {ending{panicked: http.ErrAbortHandler}, doubt, 502},
		"panic":                    {ending{panicked: "boom"}, doubt, 502},
		"panic after a 200":        {ending{answer: answer{status: 200, whole: true}, panicked: "boom"}, doubt, 502},
	} {
		v := classify(c.ending, any2xx)
		if v.outcome != c.want || v.status != c.status {
			t.Errorf("%s: got %s and %d, want %s and %d", name, v.outcome, v.status, c.want, c.status)
		}
		if (v.err != nil) != (c.status != 0) {
			t.Errorf("%s: error %v with status %d", name, v.err, v.status)
		}
	}
}

func TestOutcomeFollowsTheSuccessList(t *testing.T) {
	h := &Handler{Success: []int{202, 204}}
	for status, want := range map[int]dedupe.Outcome{
		202: dedupe.OutcomeAccepted, 204: dedupe.OutcomeAccepted, 200: dedupe.OutcomeRefused, 500: dedupe.OutcomeRefused,
	} {
		if v := classify(whole(status), h.accepts); v.outcome != want {
			t.Errorf("%d: got %s", status, v.outcome)
		}
	}
}

func TestNoAcceptanceWithoutAWholeSuccess(t *testing.T) {
	// Whatever a success list says, and in every combination.
	for status := range 600 {
		for _, w := range []bool{false, true} {
			for _, err := range []error{nil, errors.New("x")} {
				for _, panicked := range []any{nil, "boom"} {
					e := ending{answer: answer{status: status, whole: w}, err: err, panicked: panicked}
					v := classify(e, any2xx)
					genuine := w && err == nil && panicked == nil && any2xx(status)
					if (v.outcome == dedupe.OutcomeAccepted) != genuine {
						t.Fatalf("%+v is %s", e, v.outcome)
					}
					if passes := v.status == 0; passes && !genuine && v.outcome != dedupe.OutcomeRefused {
						t.Fatalf("%+v: %s passes the answer on", e, v.outcome)
					}
					if v.status != 0 && !slices.Contains([]int{502, 503, 504}, v.status) {
						t.Fatalf("%+v: answered with %d", e, v.status)
					}
				}
			}
		}
	}
}
