package faults

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// TestFloodCostsTheStoreNothing: whatever strangers send, the store is never
// asked, the upstream never reached, and memory does not grow.
func TestFloodCostsTheStoreNothing(t *testing.T) {
	t.Parallel()
	u, r := harness.StartUpstream(t), harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u, "max_body 64KiB"), harness.WithRedis(r.Addr))
	sender := harness.NewSender(t, "paymos")
	genuine := sender.Event(harness.Unique("evt"))
	g.Expect(t, genuine, "200 first")
	pid := pidOf(t, g)
	kinds := floodKinds(sender)
	flood(t, g, kinds, 2_000) // until then, memory grows to what it needs
	r.Do("CONFIG", "RESETSTAT")
	used := resident(t, pid, "VmHWM")
	flood(t, g, kinds, 20_000)
	after := resident(t, pid, "VmHWM")
	t.Logf("most memory before and after: %d MiB, %d MiB", used, after)
	if after > used+used/2+64 {
		t.Errorf("the flood took memory up from %d MiB to %d MiB", used, after)
	}
	if calls := storeCalls(t, r); calls > 100 {
		t.Errorf("Redis ran %d commands during the flood", calls)
	}
	if n := u.Total(); n != 1 {
		t.Errorf("the upstream got %d requests", n)
	}
	g.Expect(t, genuine, "200 duplicate")
}

// storeCalls counts the commands on keys since the last RESETSTAT. A gateway looks
// after its store's health now and then: a few are no request's.
func storeCalls(t *testing.T, r *harness.Redis) (calls int) {
	t.Helper()
	info, err := r.Client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !slices.Contains([]string{"get", "set", "pttl", "del", "eval", "evalsha"}, name) {
			continue
		}
		n, err := strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
		if err != nil {
			t.Fatal(err)
		}
		calls += n
	}
	return calls
}

// floodKind is a request of a stranger, and the status that it deserves.
type floodKind struct {
	delivery *harness.Delivery
	status   int
}

func floodKinds(sender *harness.Sender) []floodKind {
	d := sender.Event(harness.Unique("evt"))
	signature := d.Header.Get("X-Webhook-Signature")
	forged := signature[:len(signature)-1] + map[bool]string{true: "1", false: "0"}[strings.HasSuffix(signature, "0")]
	return []floodKind{
		{d.With("X-Webhook-Signature"), http.StatusUnauthorized},
		{d.With("X-Webhook-Signature", forged), http.StatusUnauthorized},
		{sender.WithBody(harness.Unique("evt"), bytes.Repeat([]byte("x"), 65<<10)), http.StatusRequestEntityTooLarge},
	}
}

// flood sends n requests of all kinds.
func flood(t *testing.T, g *harness.Gateway, kinds []floodKind, n int) {
	client := &http.Client{Timeout: harness.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	queue := make(chan floodKind)
	var pool sync.WaitGroup
	for range 16 {
		pool.Go(func() {
			for k := range queue {
				// Where the body is too large, the connection may break before the answer is read.
				if status := post(client, g.URL, k.delivery); status != k.status && (status != 0 || k.status != http.StatusRequestEntityTooLarge) {
					t.Errorf("a stranger got %d, want %d", status, k.status)
				}
			}
		})
	}
	for i := range n {
		queue <- kinds[i%len(kinds)]
	}
	close(queue)
	pool.Wait()
}
