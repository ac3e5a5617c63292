package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// The run with faults: how many events there are, in how many lanes, how often
// the program under test is killed meanwhile, and how a sender tries.
const (
	faultLanes   = 50
	faultKills   = 3
	faultTries   = 40
	faultPause   = 300 * time.Millisecond
	faultTimeOut = 2 * time.Second
)

// measureFaults counts what is lost and repeated while the upstream fails now and
// then and the program under test is killed and started again.
func (r *rig) measureFaults(ctx context.Context, events int) ([]namedTable, error) {
	t := namedTable{
		Title: fmt.Sprintf("%d events, an upstream that fails, %d times kill -9", events, faultKills),
		Cells: [][]string{{"variant", "events lost", "repeated after a 2xx", "worked on more than once", "never acknowledged", "answers not 2xx"}},
	}
	patient := "lease 1s\n\t\tupstream_timeout 1s\n\t\twait 200ms"
	for _, v := range []struct{ name, title, store string }{
		{"proxy", "Caddy `reverse_proxy` alone", ""},
		{"redis", "gateway, Redis", r.redis.store()},
		{"file", "gateway, file store", "file " + filepath.Join(r.dir, "faults-file", "events")},
		{"nginx", "nginx `proxy_pass` alone", ""},
		{"nginx-lua", "nginx + Lua, naive, Redis", ""},
	} {
		l, err := newFaultLedger()
		if err != nil {
			return nil, err
		}
		faulty := *r
		faulty.upstream = l.address
		dir := filepath.Join(r.dir, "faults-"+v.name)
		var s *server
		if v.store == "" {
			s, err = faulty.startServer(v.name, dir)
		} else {
			setup := gateway(v.store, false, "github")
			setup.sites["github"] = route("github", patient)
			s, err = faulty.startCaddy(setup, dir)
		}
		r.processes = faulty.processes
		if err == nil {
			err = faulty.runFaults(ctx, l, s, events)
		}
		r.processes = faulty.processes
		l.close()
		switch {
		case errors.Is(err, errNoNginx):
			t.Cells = append(t.Cells, []string{v.title, "–", "–", "–", "–", "–"})
		case err != nil:
			return nil, fmt.Errorf("%s: %w", v.title, err)
		default:
			t.Cells = append(t.Cells, append([]string{v.title}, l.cells()...))
		}
	}
	return []namedTable{t}, nil
}

// runFaults delivers events as their sender would: each until it is acknowledged,
// some of them as two copies at once, and some once more later.
func (r *rig) runFaults(ctx context.Context, l *faultLedger, s *server, events int) error {
	salt := newSalt()
	next, finished := make(chan uint64), make(chan bool)
	var lanes sync.WaitGroup
	for range faultLanes {
		lanes.Go(func() {
			for n := range next {
				event := &faultSender{ledger: l, address: s.sites["github"], salt: salt, n: n}
				switch n % 5 {
				case 0:
					var second sync.WaitGroup
					second.Go(event.deliver)
					event.deliver()
					second.Wait()
				case 1:
					event.deliver()
					event.deliver()
				default:
					event.deliver()
				}
				finished <- true
			}
		})
	}
	go func() {
		defer close(finished)
		defer lanes.Wait()
		defer close(next)
		for n := range uint64(events) {
			select {
			case next <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	proc, n := s.proc, 0
	var failure error
	for range finished {
		if n++; n%(events/(faultKills+1)) == 0 && n/(events/(faultKills+1)) <= faultKills && failure == nil {
			_ = proc.cmd.Process.Kill()
			<-proc.exited
			proc, failure = proc.again(r)
		}
	}
	if failure == nil && proc != nil {
		proc.stop()
	}
	return errors.Join(failure, ctx.Err())
}

func (l *faultLedger) cells() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost, repeated, again, unacknowledged int
	for _, e := range l.events {
		if e.acknowledged && e.worked == 0 {
			lost++
		}
		if !e.acknowledged {
			unacknowledged++
		}
		repeated += e.repeated
		again += max(0, e.worked-1)
	}
	cells := []string{}
	for _, n := range []int{lost, repeated, again, unacknowledged, l.refusals} {
		cells = append(cells, strconv.Itoa(n))
	}
	return cells
}
