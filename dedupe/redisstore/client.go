package redisstore

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Settings of go-redis. Its defaults suit a cache: they retry and wait for
// longer than a sender does.
const (
	// triesPerTimeout is how often the time of an operation suffices for one try
	// on one connection: 500ms of the default second.
	triesPerTimeout = 2
	// poolSize is plenty: batches take at most maxBatches connections, scripts
	// the rest.
	poolSize     = 12
	minIdleConns = 2
	// bufferSize holds most of a full batch in either direction.
	bufferSize = 16 << 10
	// maxRetries repeats what a broken connection swallowed. Every command of
	// this package is safe to repeat.
	maxRetries   = 1
	maxRedirects = 3
	minBackoff   = 8 * time.Millisecond
	maxBackoff   = 64 * time.Millisecond
)

// newClient makes the client. It dials nothing before its first use, but for
// minIdleConns connections that go-redis opens in the background.
func newClient(r resolved) redis.UniversalClient {
	quietOnce.Do(quiet)
	socket := r.timeout / triesPerTimeout
	o := &redis.UniversalOptions{
		Addrs:                 r.addresses,
		Username:              r.username,
		Password:              r.password,
		SentinelUsername:      r.sentinelUsername,
		SentinelPassword:      r.sentinelPassword,
		DB:                    r.db,
		MasterName:            r.master,
		TLSConfig:             r.tls,
		MaxRetries:            maxRetries,
		MaxRedirects:          maxRedirects,
		MinRetryBackoff:       minBackoff,
		MaxRetryBackoff:       maxBackoff,
		DialTimeout:           socket,
		DialerRetries:         1,
		ReadTimeout:           socket,
		WriteTimeout:          socket,
		PoolTimeout:           socket,
		ContextTimeoutEnabled: true,
		ReadBufferSize:        bufferSize,
		WriteBufferSize:       bufferSize,
		PoolSize:              poolSize,
		MinIdleConns:          minIdleConns,
		// Pipelines are all there is: a second pool for them would leave the
		// idle connections of the first unused.
		PipelinePoolSize: -1,
		// It relaxes the time-outs to 10s while a server moves.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case r.cluster:
		c := o.Cluster()
		c.MaxRetries = -1 // redirects are the budget of retries
		return redis.NewClusterClient(c)
	case r.master != "":
		return redis.NewFailoverClient(o.Failover())
	}
	return redis.NewClient(o.Simple())
}

var quietOnce sync.Once
