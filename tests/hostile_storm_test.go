package tests

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// ask sends a delivery over a client's kept connections.
func ask(client *http.Client, g *harness.Gateway, d *harness.Delivery) harness.Answer {
	req, err := http.NewRequest(d.Method, g.URL+d.Path, bytes.NewReader(d.Body))
	if err != nil {
		return harness.Answer{Err: err}
	}
	req.Header = d.Header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return harness.Answer{Err: err}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return harness.Answer{Status: resp.StatusCode, Header: resp.Header, Err: err}
}

// storm sends n copies over 50 connections and counts the answers.
func storm(g *harness.Gateway, d *harness.Delivery, n int) map[string]int {
	client := &http.Client{Timeout: harness.Patience, Transport: &http.Transport{MaxConnsPerHost: 50, MaxIdleConnsPerHost: 50}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var pool sync.WaitGroup
	answers := make(map[string]int)
	for range 50 {
		pool.Go(func() {
			for range n / 50 {
				a := ask(client, g, d).String()
				mu.Lock()
				answers[a]++
				mu.Unlock()
			}
		})
	}
	pool.Wait()
	return answers
}

func TestHostileStormOfCopiesReachesTheUpstreamOnce(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	// Copies do not wait for the first delivery, nor have to for what is done.
	site := route("/pay", "paymos", "lease 10m", "upstream_timeout 5m") + "reverse_proxy " + u.Addr
	g := harness.StartGateway(t, site, harness.WithRedis(r.Addr, "timeout 20s"))
	monitor := r.Monitor(t)
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	latch := harness.NewLatch()
	t.Cleanup(latch.Release)
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	first := g.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)

	const copies = 1_000
	if got := storm(g, d, copies); got["503 in-flight"] != copies {
		t.Errorf("copies of an event in the upstream got %v", got)
	}
	during := len(monitor.Commands(t))
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	settled := len(monitor.Commands(t))
	if got := storm(g, d, copies); got["200 duplicate"] != copies {
		t.Errorf("copies of a finished event got %v", got)
	}
	after := len(monitor.Commands(t)) - settled
	t.Logf("Redis commands: %d while the event was in the upstream, %d once it was done", during, after)
	// A claim is two commands in one round trip; a few more look after the lease.
	if most := 2*copies + 20; during > most || after > most {
		t.Errorf("%d copies cost %d commands during, and %d after; at most %d", copies, during, after, most)
	}
	assertReached(t, u, d.Event, "first")
}

func TestHostileStormIsOneEventFromItsVeryFirstCopy(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	site := route("/pay", "paymos", "wait 30s", "lease 10m") + "reverse_proxy " + u.Addr
	g := harness.StartGateway(t, site, harness.WithRedis(r.Addr, "timeout 20s"))
	monitor := r.Monitor(t)
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	got := storm(g, d, 1_000)
	if got["200 first"] != 1 || got["200 first"]+got["200 duplicate"]+got["503 in-flight"] != 1_000 {
		t.Errorf("the copies got %v", got)
	}
	if n := len(monitor.Commands(t)); n > 2_000+20 {
		t.Errorf("1,000 copies cost %d commands", n)
	}
	assertReached(t, u, d.Event, "first")
	g.Expect(t, d, "200 duplicate")
}
