package redisstore

import (
	"context"
	"crypto/tls"
	"net"
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
	// sentinelSteps is how many time-outs go-redis needs to find out, while it
	// dials, that the sentinel it knows says nothing, and to turn to another. A
	// dial that ends before it has would ask the same sentinel ever after.
	sentinelSteps = 8
	minBackoff    = 8 * time.Millisecond
	maxBackoff    = 64 * time.Millisecond
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
		// CLIENT SETINFO would be one more right to grant.
		DisableIdentity: true,
		// The third version has messages that nobody asked for, and go-redis looks
		// for them before each batch and each answer.
		Protocol: 2,
		// It relaxes the time-outs to 10s while a server moves.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case r.cluster:
		c := o.Cluster()
		c.MaxRetries = -1 // redirects are the budget of retries
		// They would ask for COMMAND, one caller at a time, until it is answered:
		// for ever if the user has no right to it.
		c.DisableRoutingPolicies = true
		return redis.NewClusterClient(c)
	case r.master != "":
		o.DialTimeout = sentinelSteps * socket
		o.Dialer = dialer(socket, r.tls)
		return redis.NewFailoverClient(o.Failover())
	}
	return redis.NewClient(o.Simple())
}

// dialer connects within timeout, whatever longer time its context gives it.
func dialer(timeout time.Duration, config *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout}
	if config == nil {
		return plain.DialContext
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
}

var quietOnce sync.Once
