package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisServer is a redis-server that keeps nothing on disk.
type redisServer struct {
	address string
	pid     int
	client  *redis.Client
}

func (r *rig) startRedis() (*redisServer, error) {
	s := &redisServer{address: freeAddress()}
	_, port, _ := net.SplitHostPort(s.address)
	p, err := r.start(loadCore, s.address, "redis-server", "--bind", "127.0.0.1", "--port", port,
		"--dir", r.dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	s.pid = p.cmd.Process.Pid
	s.client = redis.NewClient(&redis.Options{Addr: s.address})
	return s, nil
}

// store is the server in a Caddyfile.
func (s *redisServer) store() string { return "redis {\n\t\t\taddress " + s.address + "\n\t\t}" }

// usedMemory is what the server's data and connections take, in bytes.
func (s *redisServer) usedMemory(ctx context.Context) (int64, error) {
	info, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		}
	}
	return 0, fmt.Errorf("redis does not tell used_memory")
}

// calls counts the commands that the server has run, by name, without the
// benchmark's own.
func (s *redisServer) calls(ctx context.Context) (map[string]int64, error) {
	info, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	calls := make(map[string]int64)
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !found || name == "info" {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		if calls[name], err = strconv.ParseInt(n, 10, 64); err != nil {
			return nil, err
		}
	}
	return calls, nil
}
