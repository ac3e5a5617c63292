package redisstore

import (
	"context"
	_ "embed" // the scripts
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

//go:embed record.lua
var recordLua string

//go:embed claim.lua
var claimLua string

//go:embed renew.lua
var renewLua string

//go:embed release.lua
var releaseLua string

//go:embed doubt.lua
var doubtLua string

var (
	claimScript   = redis.NewScript(recordLua + claimLua)
	renewScript   = redis.NewScript(recordLua + renewLua)
	releaseScript = redis.NewScript(recordLua + releaseLua)
	doubtScript   = redis.NewScript(recordLua + doubtLua)
)

// runScript runs one of the scripts and returns the event as it left it.
// more are the arguments after token, lease and ttl.
func (c *conn) runScript(ctx context.Context, script *redis.Script, key string, h dedupe.Hold, more ...any) (dedupe.Record, error) {
	args := append([]any{h.Token, millis(h.Lease), millis(h.TTL)}, more...)
	reply, err := script.Run(ctx, c.client, []string{c.eventKey(key)}, args...).Slice()
	if err != nil {
		return dedupe.Record{}, err
	}
	if len(reply) != 2 {
		return dedupe.Record{}, errReply
	}
	left, ok := reply[1].(int64)
	switch value := reply[0].(type) {
	case nil:
		return dedupe.Record{}, nil
	case string:
		if ok {
			return decode(value, left)
		}
	}
	return dedupe.Record{}, errReply
}

// rest are a hold's arguments that only matter if the record is absent.
func rest(h dedupe.Hold) []any {
	return []any{strconv.Itoa(h.Attempt), flag(h.Doubted)}
}
