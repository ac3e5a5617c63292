package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// sink is where go-redis's own log lines go; nil drops them. There is one for
// the process, as go-redis has one logger for the process.
var sink atomic.Pointer[slog.Logger]

// LogTo sends the log lines of go-redis itself to logger, at debug level. They
// repeat what the errors of the operations say. Default nil: nowhere.
func LogTo(logger *slog.Logger) { sink.Store(logger) }

// quiet keeps go-redis from writing to standard error.
func quiet() { redis.SetLogger(bridge{}) }

type bridge struct{}

func (bridge) Printf(ctx context.Context, format string, v ...any) {
	if logger := sink.Load(); logger != nil {
		logger.DebugContext(ctx, fmt.Sprintf(format, v...), "from", "go-redis")
	}
}
