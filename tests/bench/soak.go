package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// measureSoak measures memory over time, under a load of new events and of
// copies in turns.
func (r *rig) measureSoak(ctx context.Context, length time.Duration) ([]namedTable, error) {
	t := namedTable{
		Title: fmt.Sprintf("Memory over %v, first deliveries and copies in turns", length),
		Cells: [][]string{{"store", "minutes", "requests", "requests/s", "p50 ms", "p99 ms", "RSS MiB", "wrong answers"}},
	}
	for _, name := range []string{"redis", "file"} {
		s, err := r.serverFor(name)
		if err != nil {
			return nil, err
		}
		rows, err := r.soak(ctx, name, s, length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Cells = append(t.Cells, rows...)
	}
	return []namedTable{t}, nil
}

// soak runs the load in pieces and weighs the process after each.
func (r *rig) soak(ctx context.Context, name string, s *server, length time.Duration) (rows [][]string, err error) {
	done := newSalt()
	prime := r.job(variant{sender: "github", word: "first"}, s)
	prime.New, prime.Count = done, doneEvents
	if _, err := r.load(ctx, prime); err != nil {
		return nil, err
	}
	piece := max(length/20, time.Second)
	var requests uint64
	start := time.Now()
	for time.Since(start) < length {
		j := r.job(variant{sender: "github"}, s)
		j.New, j.Done, j.DoneCount = newSalt(), done, doneEvents
		j.Warmup, j.Duration = 0, piece
		out, err := r.load(ctx, j)
		if err != nil {
			return nil, err
		}
		requests += out.Requests
		minutes := fmt.Sprintf("%.1f", time.Since(start).Minutes())
		fmt.Fprintf(os.Stderr, "%s: %s minutes\n", name, minutes)
		rows = append(rows, []string{
			name, minutes, fmt.Sprint(requests), fmt.Sprintf("%.0f", throughput(out)),
			fmt.Sprintf("%.2f", out.P50), fmt.Sprintf("%.2f", out.P99), mebibytes(s.pid), fmt.Sprint(out.Wrong),
		})
	}
	return rows, nil
}
