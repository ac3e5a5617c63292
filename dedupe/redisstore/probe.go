package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeTime is how long a probe's keys live. They are not deleted: that would
// be one more right to grant.
const probeTime = time.Second

// probe runs every command that the store needs, on keys that no event or
// binding has: theirs have a source, without exclamation marks.
func (c *conn) probe(ctx context.Context, client redis.UniversalClient, node string) []Finding {
	event, ok1 := c.probeKey(ctx, client, c.eventKey)
	binding, ok2 := c.probeKey(ctx, client, c.bindingKey)
	if !ok1 || !ok2 {
		return nil // the node serves no key any more
	}
	ms := probeTime.Milliseconds()
	var found []Finding
	for _, try := range []struct {
		command string
		args    []any
	}{
		{"SET", []any{"set", event, "probe", "px", ms, "nx"}},
		{"SET", []any{"set", event, "probe", "px", ms}},
		{"GET", []any{"get", event}},
		{"PTTL", []any{"pttl", event}},
		{"SET of a binding", []any{"set", binding, "probe", "px", ms, "nx"}},
		{"GET of a binding", []any{"get", binding}},
	} {
		if err := client.Do(ctx, try.args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			f := c.refused(node, try.command, err)
			if f.Reason == Unreachable {
				return append(found, f)
			}
			found = append(found, f)
		}
	}
	return append(found, c.probeScripts(ctx, client, node, event)...)
}

// probeScripts runs a script both ways: by its text, and from the cache. It
// finds a value that no event has, and changes nothing.
func (c *conn) probeScripts(ctx context.Context, client redis.UniversalClient, node, key string) []Finding {
	var found []Finding
	keys, args := []string{key}, []any{"probe", 1000, 1000, "1", "0"}
	if err := releaseScript.Eval(ctx, client, keys, args...).Err(); err != nil {
		found = append(found, c.refused(node, "EVAL", err))
	}
	err := releaseScript.EvalSha(ctx, client, keys, args...).Err()
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		found = append(found, c.refused(node, "EVALSHA", err))
	}
	return found
}

// probeKey is a key to probe client with: in a cluster, one that it serves.
func (c *conn) probeKey(ctx context.Context, client redis.UniversalClient, inSpace func(string) string) (string, bool) {
	cluster, ok := c.client.(*redis.ClusterClient)
	if !ok {
		return inSpace("!probe"), true
	}
	for i := range 1 << 14 {
		key := inSpace("!probe" + strconv.Itoa(i))
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", false
		}
		if node == client {
			return key, true
		}
	}
	return "", false
}

// distinct leaves one finding of each reason, with the details of all.
func distinct(found []Finding) []Finding {
	var kept []Finding
next:
	for _, f := range found {
		for i, k := range kept {
			if k.Reason == f.Reason {
				kept[i].Detail = fmt.Sprintf("%s; %s", k.Detail, f.Detail)
				continue next
			}
		}
		kept = append(kept, f)
	}
	return kept
}
