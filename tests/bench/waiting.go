package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// How long the upstream holds the event, and how long the store is watched.
const (
	holdTime  = 20 * time.Second
	settling  = 3 * time.Second
	watchTime = 5 * time.Second
)

// measureWaiting measures what copies cost that wait for one event: at the
// process that delivers it, and at another one.
func (r *rig) measureWaiting(ctx context.Context, copies int) ([]namedTable, error) {
	t := namedTable{
		Title: fmt.Sprintf("%d copies of one event waiting, on Redis", copies),
		Cells: [][]string{{"where they wait", "store commands/s", "by command", "CPU % of one core", "RSS MiB more", "answered as duplicates"}},
	}
	setup := gateway(r.redis.store(), false)
	setup.sites["github"] = route("github", "wait 1m")
	var processes []*server
	for _, name := range []string{"owner", "other"} {
		s, err := r.startCaddy(setup, filepath.Join(r.dir, "waiting-"+name))
		if err != nil {
			return nil, err
		}
		processes = append(processes, s)
	}
	for _, where := range []struct {
		name string
		s    *server
		n    int
	}{
		{"none wait", processes[0], 0},
		{"at the owner's process", processes[0], copies},
		{"at another process", processes[1], copies},
	} {
		cells, err := r.wait(ctx, processes[0], where.s, where.n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where.name, err)
		}
		t.Cells = append(t.Cells, append([]string{where.name}, cells...))
	}
	return []namedTable{t}, nil
}

// wait has n copies of an event of owner wait at s.
func (r *rig) wait(ctx context.Context, owner, s *server, n int) ([]string, error) {
	hold := fmt.Sprintf("X-Bench-Hold: %v\r\n", holdTime)
	salt := newSalt()
	var requests sync.WaitGroup
	var failure error
	requests.Go(func() { failure = r.send(owner, salt, hold, "first") })
	time.Sleep(settling / 3)
	rssBefore, err := rssOf(s.pid)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	answered := 0
	for range n {
		requests.Go(func() {
			if r.send(s, salt, "", "duplicate") == nil {
				mu.Lock()
				defer mu.Unlock()
				answered++
			}
		})
	}
	time.Sleep(settling)
	cells, err := r.watchStore(ctx, s, rssBefore)
	requests.Wait()
	if err == nil {
		err = failure
	}
	return append(cells, fmt.Sprintf("%d of %d", answered, n)), err
}

// watchStore counts what a process and the store do meanwhile.
func (r *rig) watchStore(ctx context.Context, s *server, rssBefore int64) ([]string, error) {
	before, err := r.redis.calls(ctx)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := cpuOf(s.pid)
	if err != nil {
		return nil, err
	}
	time.Sleep(watchTime)
	after, err := r.redis.calls(ctx)
	if err != nil {
		return nil, err
	}
	cpuAfter, err := cpuOf(s.pid)
	if err != nil {
		return nil, err
	}
	rss, err := rssOf(s.pid)
	if err != nil {
		return nil, err
	}
	var total int64
	var names []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if n := after[name] - before[name]; n > 0 {
			total += n
			names = append(names, fmt.Sprintf("%s %.1f", name, float64(n)/watchTime.Seconds()))
		}
	}
	return []string{
		fmt.Sprintf("%.1f", float64(total)/watchTime.Seconds()), strings.Join(names, ", "),
		fmt.Sprintf("%.1f", 100*(cpuAfter-cpuBefore).Seconds()/watchTime.Seconds()),
		fmt.Sprintf("%.1f", float64(rss-rssBefore)/(1<<20)),
	}, nil
}

// send sends the first event of a salt and waits for its answer.
func (r *rig) send(s *server, salt, header, word string) error {
	request, err := newTemplate("github", r.body, header)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", s.sites["github"])
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(request.event(salt, 0, time.Now())); err != nil {
		return err
	}
	m, err := readMessage(bufio.NewReader(conn))
	if err == nil && (m.status != 200 || m.word != word) {
		err = fmt.Errorf("status %d, %q instead of %q", m.status, m.word, word)
	}
	return err
}
