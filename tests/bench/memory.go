package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// measureMemory measures how much memory of Redis a finished event takes, with
// and without the body's fingerprint in its key. The key prefix is the default.
func (r *rig) measureMemory(ctx context.Context, events int) ([]namedTable, error) {
	t := namedTable{
		Title: fmt.Sprintf("Redis memory of %d finished events with ids of %d characters", events, idSize),
		Cells: [][]string{{"on_reused_id", "key", "used_memory, bytes/event"}},
	}
	for _, mode := range []string{"forward", "duplicate"} {
		setup := gateway(r.redis.store(), false)
		setup.sites["github"] = route("github", "on_reused_id "+mode)
		s, err := r.startCaddy(setup, filepath.Join(r.dir, "memory-"+mode))
		if err != nil {
			return nil, err
		}
		used, key, err := r.fillByLoad(ctx, s, events)
		s.proc.stop()
		if err != nil {
			return nil, err
		}
		t.Cells = append(t.Cells, []string{mode, "`" + key + "`", fmt.Sprintf("%.1f", float64(used)/float64(events))})
	}
	return []namedTable{t}, nil
}

// fillByLoad sends events through a gateway and returns by how much the memory
// of Redis has grown.
func (r *rig) fillByLoad(ctx context.Context, s *server, events int) (grown int64, key string, err error) {
	if err := r.redis.client.FlushAll(ctx).Err(); err != nil {
		return 0, "", err
	}
	j := job{
		Address: s.sites["github"], Sender: "github", BodySize: r.body, Connections: r.connections,
		New: newSalt(), Word: "first", Count: uint64(10 * r.connections),
	}
	// The connections are made, and their buffers have grown, before it is weighed.
	if _, err := r.load(ctx, j); err != nil {
		return 0, "", err
	}
	if err := r.redis.client.FlushAll(ctx).Err(); err != nil {
		return 0, "", err
	}
	before, err := r.redis.usedMemory(ctx)
	if err != nil {
		return 0, "", err
	}
	j.New, j.Count = newSalt(), uint64(events)
	out, err := r.load(ctx, j)
	if err != nil {
		return 0, "", err
	}
	keys, err := r.redis.client.DBSize(ctx).Result()
	if err != nil {
		return 0, "", err
	}
	if keys != int64(events) || out.Wrong > 0 {
		return 0, "", fmt.Errorf("redis has %d keys of %d events; %s", keys, events, out.FirstWrong)
	}
	after, err := r.redis.usedMemory(ctx)
	if err != nil {
		return 0, "", err
	}
	if key, err = r.redis.client.RandomKey(ctx).Result(); err != nil {
		return 0, "", err
	}
	if after <= before {
		return 0, "", errors.New("redis has not grown")
	}
	return after - before, key, nil
}
