package faults

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// TestRollingRestartLosesAndRepeatsNothing restarts two gateways one after the
// other, twice, under load.
func TestRollingRestartLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for protocol := range transports {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			rollTwice(t, protocol)
		})
	}
}

func rollTwice(t *testing.T, protocol string) {
	u, r := harness.StartUpstream(t), harness.StartRedis(t)
	// Caddy waits for HTTP/3's idle connections, too: they end with the period.
	options := append([]harness.Option{harness.WithRedis(r.Addr), harness.WithGlobal("grace_period 5s")}, overTLS...)
	gateways := []*harness.Gateway{harness.StartGateway(t, proxied(u), options...), harness.StartGateway(t, proxied(u), options...)}
	var over atomic.Bool
	var senders sync.WaitGroup
	events := make([][]*harness.Delivery, 6)
	for n := range events {
		senders.Go(func() {
			s := &restless{t: t, protocol: protocol, gateways: gateways}
			for !over.Load() {
				events[n] = append(events[n], s.deliver())
			}
			s.reconnect(nil)
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
	last := &restless{t: t, protocol: protocol, gateways: gateways}
	defer last.reconnect(nil)
	total := 0
	for _, list := range events {
		for _, d := range list {
			total++
			if words := u.Words(d.Event); len(words) != 1 || words[0] != "first" {
				t.Errorf("event %s reached the upstream as %q", d.Event, words)
			}
			if a := last.send(gateways[0], d); !strings.HasPrefix(a, "200 duplicate "+protocol) {
				t.Errorf("event %s got %q in the end", d.Event, a)
			}
		}
	}
	t.Logf("%d events through four restarts", total)
}

// restless is a sender that keeps its connections for as long as they serve.
type restless struct {
	t        *testing.T
	protocol string
	gateways []*harness.Gateway
	rt       http.RoundTripper
}

// deliver sends an event, now and then twice at once, to one gateway or the
// other until it is acknowledged.
func (s *restless) deliver() *harness.Delivery {
	d := harness.NewSender(s.t, "paymos").Event(harness.Unique("evt"))
	for n := rand.IntN(2); ; n++ {
		if s.rt == nil {
			s.reconnect(transports[s.protocol]())
		}
		var both sync.WaitGroup
		if n%5 == 0 {
			rt := s.rt
			both.Go(func() { <-begin(s.t, rt, s.gateways[rand.IntN(2)].URL, d).answer })
		}
		a := s.send(s.gateways[n%2], d)
		both.Wait()
		switch {
		case strings.HasPrefix(a, "200 "):
			return d
		case !strings.HasSuffix(a, s.protocol+".0") && !strings.HasSuffix(a, s.protocol):
			s.reconnect(nil) // there was no answer
		}
	}
}

func (s *restless) send(g *harness.Gateway, d *harness.Delivery) string {
	if s.rt == nil {
		s.reconnect(transports[s.protocol]())
	}
	return <-begin(s.t, s.rt, g.URL, d).answer
}

// reconnect lets the connections go, for new ones if rt is set.
func (s *restless) reconnect(rt http.RoundTripper) {
	switch old := s.rt.(type) {
	case io.Closer:
		old.Close()
	case *http.Transport:
		old.CloseIdleConnections()
	}
	if t, ok := rt.(*http3.Transport); ok {
		// Nobody says over UDP that a gateway is not there.
		t.QUICConfig = &quic.Config{HandshakeIdleTimeout: 500 * time.Millisecond, MaxIdleTimeout: 3 * time.Second}
	}
	s.rt = rt
}
