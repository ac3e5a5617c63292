package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// ErrClosed is returned by operations on a store that was closed.
var ErrClosed = errors.New("the Redis store is closed")

// errReply stands for an answer that none of the commands can have.
var errReply = errors.New("redis: an answer that does not fit the command")

// failure is err as an operation returns it. Some servers repeat the arguments
// of a command that they refuse, the login's as well: such an error is replaced
// by its text without them.
func (c *conn) failure(operation string, err error) error {
	text := err.Error()
	for _, secret := range c.options.secrets() {
		if strings.Contains(text, secret) {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if text != err.Error() {
		return fmt.Errorf("redis: %s: %s", operation, text)
	}
	if strings.Contains(text, "WRONGTYPE") {
		return fmt.Errorf("redis: %s: %w: %w", operation, dedupe.ErrCorrupt, err)
	}
	return fmt.Errorf("redis: %s: %w", operation, err)
}

// stale reports whether err says that the connection leads to a server that is
// no primary (any more): READONLY, or MASTERDOWN from a replica that lost its
// own. go-redis drops a connection for the first only, and only if it reads so
// literally and came to the first command of a batch.
func stale(err error) bool {
	text := err.Error()
	return strings.Contains(text, "READONLY") || strings.Contains(text, "MASTERDOWN")
}
