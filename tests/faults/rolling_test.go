package faults

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// TestRollingRestartLosesAndRepeatsNothing restarts two gateways one after the
// other, twice, under load.
func TestRollingRestartLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	u, r := harness.StartUpstream(t), harness.StartRedis(t)
	var gateways []*harness.Gateway
	for range 2 {
		gateways = append(gateways, harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr)))
	}
	var over atomic.Bool
	var senders sync.WaitGroup
	events := make([][]*harness.Delivery, 6)
	for n := range events {
		senders.Go(func() {
			for !over.Load() {
				events[n] = append(events[n], deliverAnyhow(t, gateways))
			}
		})
	}
	for range 2 {
		for _, g := range gateways {
			g.Terminate()
			g.Start("")
		}
	}
	over.Store(true)
	senders.Wait()
	total := 0
	for _, list := range events {
		for _, d := range list {
			total++
			if words := u.Words(d.Event); len(words) != 1 || words[0] != "first" {
				t.Errorf("event %s reached the upstream as %q", d.Event, words)
			}
			gateways[0].Expect(t, d, "200 duplicate")
		}
	}
	t.Logf("%d events through four restarts", total)
}

// deliverAnyhow sends an event, now and then twice at once, to one gateway or the
// other until it is acknowledged.
func deliverAnyhow(t *testing.T, gateways []*harness.Gateway) *harness.Delivery {
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	for n := rand.IntN(2); ; n++ {
		g := gateways[n%2]
		if n%5 == 0 {
			copied := gateways[rand.IntN(2)].Begin(t, harness.HTTP1, d)
			defer copied.Answer()
		}
		if a := g.Send(t, d); a.Status == 200 {
			return d
		}
	}
}
