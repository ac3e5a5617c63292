package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// Store is a [dedupe.Store] in Redis. An operation is not stopped by the end of
// its context, only by the time-out of the options: a command that may have
// reached the server has to be waited for. A server that was away is found
// again by the next operation.
type Store struct {
	current atomic.Pointer[conn]

	history history

	// mu guards changes of current.
	mu sync.Mutex
}

var _ dedupe.Store = (*Store)(nil)

// minLife is how long a conn is kept, at least, when the server says that it
// is no primary: a new one per answer would be too many.
const minLife = 200 * time.Millisecond

// New returns a store that connects at its first operation. The error is that
// of [Options.Validate].
func New(o Options) (*Store, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	s := &Store{}
	s.current.Store(newConn(r))
	return s, nil
}

// Update goes over to new options of the same identity: another password,
// other certificates, another time-out. Operations under way end with the old
// ones. It fails, and changes nothing, if the options are not valid or lead to
// another store.
func (s *Store) Update(o Options) error {
	r, err := o.resolve()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	switch {
	case old == nil:
		return ErrClosed
	case old.options.identity() != r.identity():
		return errors.New("redis: the options lead to another store")
	case old.options.sameClient(r):
		return nil
	}
	s.current.Store(newConn(r))
	old.release()
	return nil
}

// Ping reports whether the server answers. In a cluster it asks one node.
func (s *Store) Ping(ctx context.Context) error {
	_, err := do(ctx, s, "ping", func(ctx context.Context, c *conn) (string, error) {
		return c.client.Ping(ctx).Result()
	})
	return err
}

// Close implements [dedupe.Store]. Operations under way still end as they
// would; the connections are closed after the last.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.current.Swap(nil); old != nil {
		old.release()
	}
	return nil
}

// do runs one operation under its own deadline. An error means that its outcome
// is not known.
func do[T any](ctx context.Context, s *Store, operation string, run func(context.Context, *conn) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("redis: %s: %w", operation, err)
	}
	c, err := s.acquire()
	if err != nil {
		return none, fmt.Errorf("redis: %s: %w", operation, err)
	}
	defer c.release()
	result, err := run(c.times.Next(), c)
	if err != nil {
		s.recover(c, err)
		return none, c.failure(operation, err)
	}
	return result, nil
}

func (s *Store) acquire() (*conn, error) {
	for {
		c := s.current.Load()
		if c == nil {
			return nil, ErrClosed
		}
		if c.acquire() {
			return c, nil
		}
	}
}

// recover takes from an error of c what it says of the way to the primary. A
// cluster's client learns of a failover when a node says MOVED, but a dead node
// says nothing: then it would look at the cluster anew only once a minute.
func (s *Store) recover(c *conn, err error) {
	var reply redis.Error
	answered := errors.As(err, &reply)
	switch cluster, ok := c.client.(*redis.ClusterClient); {
	case ok && (!answered || stale(err)):
		cluster.ReloadState(context.Background()) // in the background, at most 5 times a second
	case !ok && stale(err):
		s.replace(c)
	}
}

// replace leaves all connections of c behind, which lead to a server that was
// a primary once, and looks the primary up anew.
func (s *Store) replace(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != c || time.Since(c.born) < minLife {
		return
	}
	s.current.Store(newConn(c.options))
	c.release()
}
