package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// historyTTL is the default of a route.
const historyTTL = 7 * 24 * time.Hour

// measureHistory measures both paths on an empty store and on one that holds
// many records. Both gateways run, and take turns, so that what disturbs the
// machine disturbs both.
func (r *rig) measureHistory(ctx context.Context, records int) ([]namedTable, error) {
	t := namedTable{
		Title: fmt.Sprintf("Both paths with an empty store, and with %d records", records),
		Cells: [][]string{{"store", "path", "load", "p50 ms empty", "p50 ms full", "p99 ms empty", "p99 ms full", "requests/s full/empty", "RSS MiB empty", "RSS MiB full", "wrong answers"}},
	}
	second, err := r.startRedis()
	if err != nil {
		return nil, err
	}
	salt := newSalt()
	for _, kind := range []string{"file", "redis"} {
		empty, full, err := r.historyPair(ctx, kind, second, salt, records)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		for _, v := range variants() {
			if v.server != kind || v.sender != "github" {
				continue
			}
			cells, err := r.comparePair(ctx, v, empty, full, salt, records)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
			t.Cells = append(t.Cells, append([]string{kind}, cells...))
		}
		empty.proc.stop()
		full.proc.stop()
	}
	return []namedTable{t}, nil
}

// historyPair starts two gateways, the second with records in its store.
func (r *rig) historyPair(ctx context.Context, kind string, second *redisServer, salt string, records int) (empty, full *server, err error) {
	var store dedupe.Store
	emptyStore, fullStore := r.redis.store(), second.store()
	if kind == "file" {
		directory := filepath.Join(r.dir, "history")
		emptyStore, fullStore = "file "+directory+"-empty", "file "+directory
		store, err = filestore.Open(directory, filestore.Options{})
	} else {
		store, err = redisstore.New(redisstore.Options{Addresses: []string{second.address}})
	}
	if err != nil {
		return nil, nil, err
	}
	if err := r.fill(ctx, store, salt, records); err != nil {
		return nil, nil, err
	}
	if err := store.Close(); err != nil {
		return nil, nil, err
	}
	if empty, err = r.startCaddy(gateway(emptyStore, false, "github"), filepath.Join(r.dir, kind+"-empty")); err != nil {
		return nil, nil, err
	}
	full, err = r.startCaddy(gateway(fullStore, false, "github"), filepath.Join(r.dir, kind+"-full"))
	return empty, full, err
}

// fill finishes events as the gateway does for GitHub's, without HTTP.
func (r *rig) fill(ctx context.Context, store dedupe.Store, salt string, records int) error {
	request, err := newTemplate("github", r.body, "")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(request.body)
	fingerprint, mark := dedupe.Fingerprint(sum), dedupe.MarkOf(binary.BigEndian.Uint32(sum[:]))
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var workers sync.WaitGroup
	for range 200 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(records) && failure.Load() == nil; i = next.Add(1) - 1 {
				key := dedupe.Key("shop", idOf(salt, uint64(i)), fingerprint)
				if err := store.Complete(ctx, key, dedupe.Done{Mark: mark, TTL: historyTTL}); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// comparePair runs a variant's load on both gateways in turns.
func (r *rig) comparePair(ctx context.Context, v variant, empty, full *server, salt string, records int) ([]string, error) {
	onEmpty, onFull := &row{variant: v}, &row{variant: v}
	onEmpty.done = newSalt()
	prime := r.job(v, empty)
	prime.New, prime.Count, prime.Rate, prime.Word = onEmpty.done, doneEvents, 0, "first"
	if _, err := r.load(ctx, prime); err != nil {
		return nil, err
	}
	for range r.rounds {
		for _, side := range []struct {
			row   *row
			s     *server
			done  string
			count uint64
		}{{onEmpty, empty, onEmpty.done, doneEvents}, {onFull, full, salt, uint64(records)}} {
			j := r.job(v, side.s)
			if j.New = newSalt(); v.duplicate {
				j.New, j.Done, j.DoneCount = "", side.done, side.count
			}
			out, err := r.load(ctx, j)
			if err != nil {
				return nil, err
			}
			side.row.Runs = append(side.row.Runs, out)
		}
	}
	path, load := "first-seen", "full speed"
	if v.duplicate {
		path = "duplicate"
	}
	if v.Open {
		load = fmt.Sprintf("%.0f/s", r.rate)
	}
	return []string{
		path, load,
		onEmpty.each(p50).text("%.2f"), onFull.each(p50).text("%.2f"),
		onEmpty.each(p99).text("%.2f"), onFull.each(p99).text("%.2f"),
		onFull.against(onEmpty, throughput, ratio).text("%.2f"),
		mebibytes(empty.pid), mebibytes(full.pid), fmt.Sprint(onEmpty.wrong(), " ", onFull.wrong()),
	}, nil
}

func mebibytes(pid int) string {
	rss, err := rssOf(pid)
	if err != nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(rss)/(1<<20))
}
