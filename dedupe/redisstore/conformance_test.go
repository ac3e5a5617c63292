package redisstore

import (
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/storetest"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestStoreKeepsTheContract(t *testing.T) {
	server := harness.StartRedis(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.Do("flushall")
		return storetest.Harness{Store: openAt(t, server.Addr), Advance: func(d time.Duration) { advance(server, d) }}
	})
}

// The script cache is empty after a restart or a failover.
func TestStoreKeepsTheContractWithoutCachedScripts(t *testing.T) {
	server := harness.StartRedis(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.Do("flushall")
		server.Do("script", "flush")
		return storetest.Harness{Store: openAt(t, server.Addr), Advance: func(d time.Duration) { advance(server, d) }}
	})
}
