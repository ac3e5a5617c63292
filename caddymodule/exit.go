package caddymodule

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// exit is what this process knows of its own end. Caddy waits for requests
// whose sender is still there, but not for those whose sender has gone: their
// upstream calls would be cut off, and the events be in doubt.
var exit = newExitPlan()

// drainTime is for writing what waits for a store that is closed while the
// process lives on, or that has no grace period.
const drainTime = 10 * time.Second

type exitPlan struct {
	mu    sync.Mutex
	grace time.Duration // 0: as long as it takes
	end   time.Time     // set once the process is exiting and has a grace period
	// over ends with the grace period: deliveries still in the upstream are given
	// up. Caddy's HTTP/3 server would wait for their handlers beyond it.
	over   context.Context
	giveUp context.CancelFunc // ends it
}

func newExitPlan() *exitPlan {
	p := new(exitPlan)
	p.over, p.giveUp = context.WithCancel(context.Background())
	return p
}

// allow sets the grace period of the configuration in force.
func (p *exitPlan) allow(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grace = grace
}

// listen learns from Caddy's events when a configuration begins to stop.
func (p *exitPlan) listen(ctx caddy.Context) error {
	app, err := ctx.App("events")
	if err != nil {
		return err
	}
	return app.(*caddyevents.App).On("stopping", p)
}

// Handle implements [caddyevents.Handler]: it is called when a configuration
// begins to stop, be it for a reload or for good.
func (p *exitPlan) Handle(context.Context, caddy.Event) error {
	if caddy.Exiting() {
		p.begin()
	}
	return nil
}

// begin starts the grace period. There is only one, however often the process is
// told to end.
func (p *exitPlan) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grace > 0 && p.end.IsZero() {
		p.end = time.Now().Add(p.grace)
		time.AfterFunc(p.grace, p.giveUp)
	}
}

// leastTime is for closing a store when the grace period is used up.
const leastTime = time.Second

// budget is the time that is left for closing a store.
func (p *exitPlan) budget() (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	end := now.Add(drainTime)
	if !p.end.IsZero() {
		end = p.end
	}
	if least := now.Add(leastTime); end.Before(least) {
		end = least
	}
	return context.WithDeadline(context.Background(), end)
}

// settleTime is for deliveries that end because the grace period has: until what
// became of them is written.
const settleTime = 500 * time.Millisecond

// patience is the time that is left for deliveries under way. Without a grace
// period there is no end to it: each delivery has its own.
func (p *exitPlan) patience() (context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.end.IsZero() {
		return context.WithDeadline(context.Background(), p.end.Add(settleTime))
	}
	return context.WithCancel(context.Background())
}

// closeConnection asks Go's HTTP/2 server to end the connection of a request. It
// tells those that it has when it stops, but not those that it was just about to
// accept: a busy sender would use such a one on, and the exit wait for it.
func closeConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && caddy.Exiting() {
		w.Header().Set("Connection", "close")
	}
}

// finish runs once, when the process exits and Caddy's servers have stopped.
func (p *exitPlan) finish(context.Context) {
	ctx, cancel := p.patience()
	defer cancel()
	if left := underWay.wait(ctx); left > 0 {
		caddy.Log().Error("exiting while deliveries are in the upstream: their events are in doubt",
			zap.String("logger", appName), zap.Int("deliveries", left))
	}
	openStores.Range(func(_, value any) bool {
		ctx, cancel := p.budget()
		defer cancel()
		if err := value.(*openStore).close(ctx); err != nil {
			caddy.Log().Error("closing the store", zap.String("logger", appName), zap.Error(err))
		}
		return true
	})
}

// gracePeriod is how long Caddy's servers give their requests at the end.
func gracePeriod(ctx caddy.Context) time.Duration {
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return 0
	}
	httpApp, ok := app.(*caddyhttp.App)
	if !ok {
		return 0
	}
	return time.Duration(httpApp.ShutdownDelay) + time.Duration(httpApp.GracePeriod)
}

// Interface guard.
var _ caddyevents.Handler = (*exitPlan)(nil)
