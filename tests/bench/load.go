package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// job is what the load generator is told, as JSON on its standard input.
type job struct {
	Address     string
	Sender      string
	Header      string // further header lines
	BodySize    int
	Connections int
	// Rate is how many requests per second are sent; 0 is as many as are answered.
	Rate float64
	// Warmup precedes what is measured, for Duration.
	Warmup, Duration time.Duration
	// Count, if set, is how many requests are sent, instead of Duration.
	Count uint64
	// New is the salt of events that are sent once. Every request has its own.
	New string
	// Done is the salt of events that are done, and DoneCount how many there are.
	// They are sent again and again.
	Done      string
	DoneCount uint64
	// Word is the Webhook-Dedupe header that every answer must have; with both
	// salts set, requests alternate, and it is not looked at.
	Word string
	// Watch are the processes whose CPU time is measured, by name.
	Watch map[string]int
}

// outcome is what the load generator prints, as JSON.
type outcome struct {
	Requests uint64
	Seconds  float64
	// Latencies in milliseconds.
	P50, P90, P99, Max float64
	// CPU seconds of the processes that were watched.
	CPU map[string]float64
	// Wrong counts answers that were not what the job expects, and requests
	// without an answer.
	Wrong      uint64
	FirstWrong string
}

// generator sends the requests of one job.
type generator struct {
	job
	next          atomic.Uint64
	begin, finish time.Time // of what is measured

	mu    sync.Mutex
	total histogram
	wrong uint64
	first string
}

// generateLoad is the subcommand that runs one job.
func generateLoad() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	out, err := runJob(j)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func runJob(j job) (*outcome, error) {
	g := &generator{job: j}
	start := time.Now()
	g.begin = start.Add(j.Warmup)
	g.finish = g.begin.Add(j.Duration)
	if j.Count > 0 {
		g.begin, g.finish = start, start.Add(time.Hour)
	}
	var senders sync.WaitGroup
	for i := range j.Connections {
		t, err := newTemplate(j.Sender, j.BodySize, j.Header)
		if err != nil {
			return nil, err
		}
		c := &connection{generator: g, number: i, template: t}
		senders.Go(c.run)
	}
	time.Sleep(time.Until(g.begin))
	before := cpuOfAll(j.Watch)
	if j.Count == 0 {
		time.Sleep(time.Until(g.finish))
	} else {
		senders.Wait()
		g.finish = time.Now()
	}
	cpu := cpuOfAll(j.Watch)
	senders.Wait()
	for name := range cpu {
		cpu[name] -= before[name]
	}
	return g.outcome(cpu), nil
}

func cpuOfAll(watch map[string]int) map[string]float64 {
	used := make(map[string]float64)
	for name, pid := range watch {
		if d, err := cpuOf(pid); err == nil {
			used[name] = d.Seconds()
		}
	}
	return used
}

func (g *generator) outcome(cpu map[string]float64) *outcome {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return &outcome{
		Requests: g.total.count, Seconds: g.finish.Sub(g.begin).Seconds(), CPU: cpu,
		P50: ms(g.total.quantile(0.5)), P90: ms(g.total.quantile(0.9)), P99: ms(g.total.quantile(0.99)), Max: ms(g.total.max),
		Wrong: g.wrong, FirstWrong: g.first,
	}
}

func (g *generator) report(h *histogram, wrong uint64, first string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total.merge(h)
	g.wrong += wrong
	if g.first == "" {
		g.first = first
	}
}

// request returns the salt and the number of the next event.
func (g *generator) request() (salt string, n uint64, more bool) {
	i := g.next.Add(1) - 1
	if g.Count > 0 && i >= g.Count {
		return "", 0, false
	}
	switch {
	case g.Done == "":
		return g.New, i, true
	case g.New == "":
		return g.Done, i % g.DoneCount, true
	case i%2 == 0:
		return g.New, i / 2, true
	}
	return g.Done, i / 2 % g.DoneCount, true
}

// connection is one kept connection, on which one request is under way at most.
type connection struct {
	*generator
	number   int
	template *template

	conn   net.Conn
	reader *bufio.Reader
	hist   histogram
	wrong  uint64
	first  string
}

func (c *connection) run() {
	defer func() {
		c.close()
		c.report(&c.hist, c.wrong, c.first)
	}()
	for turn := 0; ; turn++ {
		start, more := c.await(turn)
		if !more {
			return
		}
		salt, n, more := c.request()
		if !more {
			return
		}
		err := c.exchange(salt, n, start)
		end := time.Now()
		if err != nil {
			c.wrong++
			if c.first == "" {
				c.first = err.Error()
			}
			c.close()
			if c.wrong > 100 {
				return
			}
			continue
		}
		if !end.Before(c.begin) && end.Before(c.finish) {
			c.hist.add(end.Sub(start))
		}
	}
}

// await waits until it is time for this connection's next request, and returns
// the time that its latency is counted from. A request that is late because the
// answer before it was late counts from when it should have been sent.
func (c *connection) await(turn int) (start time.Time, more bool) {
	now := time.Now()
	if c.Rate == 0 {
		return now, now.Before(c.finish)
	}
	slot := turn*c.Connections + c.number
	due := c.begin.Add(-c.Warmup).Add(time.Duration(float64(slot) / c.Rate * float64(time.Second)))
	if !due.Before(c.finish) {
		return due, false
	}
	if now.After(due) && turn > 0 {
		return due, true
	}
	time.Sleep(due.Sub(now))
	return time.Now(), true
}

func (c *connection) exchange(salt string, n uint64, now time.Time) error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.Address, 5*time.Second)
		if err != nil {
			return err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
		if err := conn.SetDeadline(c.finish.Add(time.Minute)); err != nil {
			return err
		}
	}
	if _, err := c.conn.Write(c.template.event(salt, n, now)); err != nil {
		return err
	}
	m, err := readMessage(c.reader)
	switch {
	case err != nil:
		return err
	case m.status != 200:
		return fmt.Errorf("status %d (%s)", m.status, m.word)
	case m.word != c.Word && (c.New == "" || c.Done == ""):
		return fmt.Errorf("the answer is to a delivery that is %q, not %q", m.word, c.Word)
	}
	return nil
}

func (c *connection) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// load runs a job in a process of its own.
func (r *rig) load(ctx context.Context, j job) (*outcome, error) {
	input, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := r.command(ctx, loadCore, r.self, "load")
	output, err := runWith(cmd, input)
	if err != nil {
		return nil, fmt.Errorf("load generator: %w", err)
	}
	var out outcome
	if err := json.Unmarshal(output, &out); err != nil {
		return nil, err
	}
	if out.Requests == 0 {
		return nil, errors.New("no request was answered: " + out.FirstWrong)
	}
	return &out, nil
}
