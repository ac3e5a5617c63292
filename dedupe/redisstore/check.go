package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkSteps is how many time-outs of one operation a check may take.
const checkSteps = 4

// Check looks whether the server is fit to keep events: each primary, in a
// cluster. It needs no more rights than the store itself and INFO; what it is
// not allowed to see it does not report. It asks for the save points (CONFIG)
// once, and goes without if that is refused.
//
// It writes two keys of its own, which no event can have and which expire at
// once. The error is that of ctx, or [ErrClosed].
func (s *Store) Check(ctx context.Context) ([]Finding, error) {
	c, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer c.release()
	bounded, cancel := context.WithTimeout(ctx, checkSteps*c.options.timeout)
	defer cancel()
	var found []Finding
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		found = s.checkCluster(bounded, c, cluster)
	} else {
		found = s.checkNode(bounded, c, c.client, c.options.name())
	}
	s.history.begin()
	return found, ctx.Err()
}

func (s *Store) checkCluster(ctx context.Context, c *conn, cluster *redis.ClusterClient) []Finding {
	var mu sync.Mutex
	var found []Finding
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		of := s.checkNode(ctx, c, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		found = append(found, of...)
		return nil
	})
	if err != nil {
		found = append(found, c.refused(c.options.name(), "CLUSTER SLOTS", err))
	}
	return found
}

// checkNode checks one server.
func (s *Store) checkNode(ctx context.Context, c *conn, client redis.UniversalClient, node string) []Finding {
	text, err := client.Info(ctx).Result()
	if err != nil {
		return c.checkBlind(ctx, client, node, err)
	}
	fields := parseInfo(text)
	found := fields.judge()
	if c.unsaved(ctx, client, fields) {
		found = append(found, Finding{Reason: NoPersistence, Detail: "neither an append-only file nor snapshots: a restart forgets all events"})
	}
	for i := range found {
		found[i].Node = node
	}
	if fields["loading"] != "1" { // which has not all its keys yet
		found = append(found, s.history.note(node, sighting{fields["run_id"], fields.keys(c.options.db)}, time.Now())...)
	}
	if fields["role"] == "slave" {
		s.recover(c, errReplica)
		return found // it refuses writes, of course
	}
	return distinct(append(found, c.probe(ctx, client, node)...))
}

// checkBlind checks a server that did not answer INFO, because of err.
func (c *conn) checkBlind(ctx context.Context, client redis.UniversalClient, node string, err error) []Finding {
	f := c.refused(node, "INFO", err)
	if f.Reason == Unreachable {
		return []Finding{f}
	}
	found := c.probe(ctx, client, node)
	if f.Reason == Permission {
		found = append(found, f)
	}
	return distinct(found)
}

// unsaved reports whether the server persists nothing, as far as it tells.
func (c *conn) unsaved(ctx context.Context, client redis.UniversalClient, i info) bool {
	if i.number("aof_enabled") == 1 {
		return false
	}
	if !c.configRefused.Load() {
		points, err := client.ConfigGet(ctx, "save").Result()
		if points, ok := points["save"]; err == nil && ok {
			return points == ""
		}
		var reply redis.Error
		c.configRefused.Store(err == nil || errors.As(err, &reply))
	}
	return i.unsaved()
}

// refused is the finding that a server answers command with err.
func (c *conn) refused(node, command string, err error) Finding {
	text := c.failure("check", err).Error()
	f := Finding{Reason: WritesRefused, Node: node, Detail: command + ": " + text}
	var reply redis.Error
	switch {
	case says(text, notAllowed):
		f.Reason = Permission
	case strings.Contains(text, "READONLY"):
		f.Reason = Replica
	case !errors.As(err, &reply), says(text, notReady):
		f.Reason = Unreachable
	}
	return f
}

func says(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

var (
	// notAllowed are refusals of a login, of a command, and of one in a script.
	notAllowed = []string{"NOPERM", "NOAUTH", "WRONGPASS", "executing the script can't run"}
	// notReady are replies of a server that serves nobody for now.
	notReady = []string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "max number of clients"}
)

// errReplica is what a check finds out before a write does.
var errReplica = errors.New("READONLY: it is a replica")
