package redisstore

import (
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	server := startServer(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.do("flushall")
		return storetest.Harness{Store: openAt(t, server.addr()), Advance: server.advance}
	})
}

// The script cache is empty after a restart or a failover.
func TestStoreKeepsTheContractWithoutCachedScripts(t *testing.T) {
	server := startServer(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.do("flushall")
		server.do("script", "flush")
		return storetest.Harness{Store: openAt(t, server.addr()), Advance: server.advance}
	})
}
