package faults

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// workers is how many requests the small upstream serves at once.
const workers = 4

// smallUpstream has few workers and refuses what they cannot take, as a pool of
// PHP processes without a queue does.
type smallUpstream struct {
	addr string

	mu        sync.Mutex
	active    int
	overrun   int
	delivered map[string]int
}

func startSmallUpstream(t *testing.T) *smallUpstream {
	u := &smallUpstream{delivered: make(map[string]int)}
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	u.addr = s.Listener.Addr().String()
	return u
}

// ServeHTTP implements [http.Handler].
func (u *smallUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	u.mu.Lock()
	u.active++
	if u.active > workers {
		u.overrun++
	}
	u.delivered[r.Header.Get(harness.EventHeader)]++
	u.mu.Unlock()
	<-time.After(5 * time.Millisecond)
	u.mu.Lock()
	u.active--
	u.mu.Unlock()
	_, _ = io.WriteString(w, "ok")
}

// TestRetryWaveIsDeliveredOnce: after an outage, 2,000 events come in three
// copies each, and again until they are acknowledged. The upstream never gets
// more than it can take, everything exactly once, and the gateway holds nothing
// back in memory.
func TestRetryWaveIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	const copies = 3
	waves := []int{200, 2000} // in the first, memory grows to what it needs
	u := startSmallUpstream(t)
	g := harness.StartGateway(t, fmt.Sprintf("webhook_dedupe /pay* paymos {\nsource pay\nsecret %s\nmax_in_flight %d\n}\nreverse_proxy %s",
		harness.Secret, workers, u.addr))
	pid := pidOf(t, g)
	var peaks []int
	for wave, events := range waves {
		sendWave(t, g, wave, events, copies)
		peaks = append(peaks, resident(t, pid, "VmHWM"))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, n := range u.delivered {
		if n != 1 {
			t.Errorf("event %s was delivered %d times", id, n)
		}
	}
	if len(u.delivered) != waves[0]+waves[1] {
		t.Errorf("%d events were delivered", len(u.delivered))
	}
	if u.overrun > 0 {
		t.Errorf("the upstream had more than %d requests at once, %d times", workers, u.overrun)
	}
	t.Logf("most memory after each wave: %d MiB", peaks)
	if peaks[1] > peaks[0]+peaks[0]/2+64 {
		t.Errorf("the second wave took memory up from %d MiB to %d MiB", peaks[0], peaks[1])
	}
}

// senders is how many requests of the wave are under way at once.
const senders = 48

// sendWave sends all copies of all events until each is acknowledged.
func sendWave(t *testing.T, g *harness.Gateway, wave, events, copies int) {
	sender := harness.NewSender(t, "paymos")
	queue := make(chan *harness.Delivery, events*copies)
	for n := range events {
		d := sender.Event(fmt.Sprintf("evt_%d_%04d", wave, n))
		for range copies {
			queue <- d
		}
	}
	client := &http.Client{Timeout: harness.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	var open, pool sync.WaitGroup
	open.Add(events * copies)
	for range senders {
		pool.Go(func() {
			for d := range queue {
				if status := post(client, g.URL, d); status == http.StatusOK {
					open.Done()
					continue
				}
				// The sender comes again in a while.
				time.AfterFunc(50*time.Millisecond+rand.N(200*time.Millisecond), func() { queue <- d })
			}
		})
	}
	open.Wait()
	close(queue)
	pool.Wait()
}

// post sends a delivery and returns the status; 0 if there was no answer.
func post(client *http.Client, url string, d *harness.Delivery) int {
	r, err := http.NewRequest(d.Method, url+d.Path, bytes.NewReader(d.Body))
	if err != nil {
		return 0
	}
	r.Header = d.Header.Clone()
	r.GetBody = nil
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
