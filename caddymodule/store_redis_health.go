package caddymodule

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// How often an open Redis store is checked, and one that does not answer.
const (
	checkPace     = time.Minute
	checkPaceDown = 5 * time.Second
)

// checkedRedis is an open Redis store that is checked in the background for as
// long as it is open.
type checkedRedis struct {
	*redisstore.Store
	// logger is that of the latest configuration: a reload closes the log files
	// of the one before.
	logger atomic.Pointer[zap.Logger]
	stop   context.CancelFunc
	// said are the findings that were logged and still hold. They are those of
	// the goroutine that checks.
	said map[place]redisstore.Finding
}

// place tells findings apart: their details may change with every check.
type place struct {
	reason redisstore.Reason
	node   string
}

// watchRedis begins to check store. The first check does not hold up a start.
func watchRedis(store *redisstore.Store, logger *zap.Logger) *checkedRedis {
	ctx, stop := context.WithCancel(context.Background())
	s := newCheckedRedis(store, logger, stop)
	go s.watch(ctx, store.Check, pause)
	return s
}

func newCheckedRedis(store *redisstore.Store, logger *zap.Logger, stop context.CancelFunc) *checkedRedis {
	s := &checkedRedis{Store: store, stop: stop, said: make(map[place]redisstore.Finding)}
	s.logger.Store(logger)
	return s
}

// Close implements [dedupe.Store].
func (s *checkedRedis) Close() error {
	s.stop()
	health.forget(s)
	return s.Store.Close()
}

// watch checks the store until ctx ends.
func (s *checkedRedis) watch(ctx context.Context, check func(context.Context) ([]redisstore.Finding, error), pause func(context.Context, time.Duration)) {
	for {
		found, err := check(ctx)
		if err != nil || ctx.Err() != nil {
			return // the store is closed
		}
		s.report(found)
		pace := checkPace
		if health.publish(ctx, s, found) {
			pace = checkPaceDown
		}
		pause(ctx, pace)
	}
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// report logs what is new and what is over.
func (s *checkedRedis) report(found []redisstore.Finding) {
	now := make(map[place]redisstore.Finding)
	for _, f := range found {
		p := place{f.Reason, f.Node}
		if _, said := s.said[p]; !said {
			s.log(levelOf(f.Reason), "the Redis store is not as it should be", f)
		}
		now[p] = f
	}
	for p, f := range s.said {
		if _, still := now[p]; !still {
			s.log(zapcore.InfoLevel, "the Redis store is as it should be again", f)
		}
	}
	s.said = now
}

func (s *checkedRedis) log(level zapcore.Level, message string, f redisstore.Finding) {
	s.logger.Load().Log(level, message,
		zap.String("reason", string(f.Reason)), zap.String("node", f.Node), zap.String("detail", f.Detail))
}

// levelOf is a warning for what costs repeats only if something else happens,
// or is over already.
func levelOf(r redisstore.Reason) zapcore.Level {
	switch r {
	case redisstore.NoPersistence, redisstore.MemoryNearlyFull, redisstore.Restarted:
		return zapcore.WarnLevel
	}
	return zapcore.ErrorLevel
}

// health is what the last checks of all open Redis stores found. There are two
// while a reload goes over from one store to another.
var health = storeHealth{found: make(map[*checkedRedis][]redisstore.Finding)}

type storeHealth struct {
	mu    sync.Mutex
	found map[*checkedRedis][]redisstore.Finding
}

// publish takes what a check found into the metrics, unless ctx has ended with
// the store. It reports whether a server does not answer.
func (h *storeHealth) publish(ctx context.Context, s *checkedRedis, found []redisstore.Finding) (down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() == nil {
		h.found[s] = found
		h.export()
	}
	for _, f := range found {
		down = down || f.Reason == redisstore.Unreachable
	}
	return down
}

func (h *storeHealth) forget(s *checkedRedis) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.found, s)
	h.export()
}

// export sets the gauges. Without a Redis store there are none: an alert on a
// store that is not up shall be silent then.
func (h *storeHealth) export() {
	if len(h.found) == 0 {
		metrics.storeUp.Reset()
		metrics.storeFindings.Reset()
		return
	}
	holds := make(map[redisstore.Reason]bool)
	for _, found := range h.found {
		for _, f := range found {
			holds[f.Reason] = true
		}
	}
	for _, reason := range redisstore.Reasons() {
		metrics.storeFindings.WithLabelValues(string(reason)).Set(oneIf(holds[reason]))
	}
	metrics.storeUp.WithLabelValues().Set(oneIf(!holds[redisstore.Unreachable]))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
