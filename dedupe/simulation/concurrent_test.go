package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

// arena is a store that callers use at the same time, and a clock that is moved
// under them.
type arena struct {
	store   dedupe.Store
	advance func() error // by a tick, at once for all keys

	rng   *rand.Rand
	keys  []string
	clock atomic.Int64 // orders the begins and the ends

	mu    sync.Mutex
	calls map[string][]called // by key
}

// How many fight for how many records, and for how long. What comes together on
// a record must be no more than linearizable can tell.
const (
	arenaCallers = 6
	arenaKeys    = 3
	arenaSteps   = 18
	arenaTicks   = 5
)

// fight lets callers do what they like, and returns all that was done, by key.
func (a *arena) fight() map[string][]called {
	a.calls = make(map[string][]called)
	var all sync.WaitGroup
	for who := range arenaCallers {
		rng := rand.New(rand.NewPCG(a.rng.Uint64(), 1))
		all.Go(func() { a.caller(who, rng) })
	}
	all.Go(func() {
		for range arenaTicks {
			for range 200 {
				runtime.Gosched()
			}
			a.do(a.keys, asked{op: passes}, func() (told, error) { return told{}, a.advance() })
		}
	})
	all.Wait()
	return a.calls
}

// do does one thing and notes it for the keys that it concerns.
func (a *arena) do(keys []string, what asked, ask func() (told, error)) told {
	c := called{asked: what, begun: a.clock.Add(1)}
	said, err := ask()
	c.ended = a.clock.Add(1)
	c.told, c.failed = told{whole(said.record), said.owned}, err != nil
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		a.calls[key] = append(a.calls[key], c)
	}
	return said
}

// caller claims events under one token after the other, and does to its claims
// what an owner can do, be they still its own or not.
func (a *arena) caller(who int, rng *rand.Rand) {
	tokens := 0
	holds := make(map[string]dedupe.Hold)
	for range arenaSteps {
		key := a.keys[rng.IntN(len(a.keys))]
		h, had := holds[key]
		if !had || rng.IntN(4) == 0 {
			tokens++
			h = dedupe.Hold{Token: fmt.Sprintf("t%d-%d", who, tokens), Attempt: 1, Lease: oneLease, TTL: threeTTL}
		}
		what := asked{hold: h, done: dedupe.Done{Mark: 1 + uint16(who), TTL: 1000 * tick}}
		switch n := rng.IntN(100); {
		case n < 35:
			what.op = "take over"
		case n < 45:
			what.op = "claim"
		case n < 58:
			what.op = "renew"
		case n < 73:
			what.op = "release"
		case n < 83:
			what.op = "doubt"
		case n < 86:
			what.op = "complete"
		default:
			what.op = "look up"
		}
		said := a.do([]string{key}, what, func() (told, error) { return ask(a.store, key, what) })
		if said.record.OwnedBy(h.Token) {
			h.Attempt, h.Doubted = said.record.Attempt, said.record.Doubted
		}
		holds[key] = h
	}
}

// checkFights lets callers fight over new events, round after round, and checks
// that each record saw them one at a time. It returns the first that did not.
func checkFights(store dedupe.Store, advance func() error, seed uint64, rounds int) error {
	for round := range rounds {
		a := &arena{store: store, advance: advance, rng: rand.New(rand.NewPCG(seed, uint64(round)))}
		for n := range arenaKeys {
			a.keys = append(a.keys, dedupe.Key("arena", fmt.Sprintf("%d-%d-%d", seed, round, n), ""))
		}
		for key, calls := range a.fight() {
			slices.SortFunc(calls, func(a, b called) int { return int(a.begun - b.begun) })
			if len(calls) > 64 {
				calls = before(calls, 64)
			}
			if !linearizable(calls) {
				return fmt.Errorf("seed %d, round %d: no order of the calls on %s explains them: %s", seed, round, key, tell(calls))
			}
		}
	}
	return nil
}

// before are the first n calls, and those of them that had not ended when the next
// began as calls of which nothing is known.
func before(calls []called, n int) []called {
	cut := slices.Clone(calls[:n])
	for i := range cut {
		if cut[i].ended > calls[n].begun && cut[i].op != passes {
			cut[i].failed = true
		}
	}
	return cut
}

func tell(calls []called) (text string) {
	for _, c := range calls {
		text += fmt.Sprintf("\n%4d-%-4d %-15s %-6s %+v failed %v", c.begun, c.ended, c.op, c.hold.Token, c.told, c.failed)
	}
	return text
}

// ticking is a clock that is moved by hand.
type ticking struct{ ticks atomic.Int64 }

func (c *ticking) now() time.Time { return epoch.Add(time.Duration(c.ticks.Load()) * tick) }

func (c *ticking) advance() error { c.ticks.Add(1); return nil }

// TestConcurrentCallersSeeOneRecord: whatever callers do at the same time, each
// store answers as if they came one after the other, and as the model says.
func TestConcurrentCallersSeeOneRecord(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if *seedFlag != 0 {
		seed = *seedFlag
	}
	t.Run("in memory", func(t *testing.T) {
		c := &ticking{}
		check(t, checkFights(memstore.New(c.now), c.advance, seed, 150))
	})
	for _, mode := range []filestore.Sync{filestore.EverySec, filestore.Always} {
		t.Run("on files, "+mode.String(), func(t *testing.T) {
			c := &ticking{}
			s, err := filestore.Open(t.TempDir(), filestore.Options{Now: c.now, Sync: mode})
			check(t, err)
			defer s.Close()
			check(t, checkFights(s, c.advance, seed, 50))
		})
	}
	t.Run("on Redis", func(t *testing.T) {
		d := openDatabase(t, startRedis(t), 0)
		check(t, checkFights(d.store, func() error { return d.advance(tick) }, seed, 50))
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// looksFirst decides on what it saw before, and not on what is.
type looksFirst struct{ dedupe.Store }

func (s looksFirst) Claim(ctx context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	seen, err := s.Store.Lookup(ctx, key)
	if err != nil || seen.State == dedupe.Completed || seen.LeaseLeft > 0 {
		return seen, err
	}
	runtime.Gosched()
	if _, err := s.Store.Claim(ctx, key, h, takeover); err != nil {
		return dedupe.Record{}, err
	}
	doubted := seen.Doubted || seen.State == dedupe.InFlight || seen.State == dedupe.InDoubt
	return dedupe.Record{State: dedupe.InFlight, Token: h.Token, Attempt: seen.Attempt + 1, Doubted: doubted, LeaseLeft: h.Lease, Left: h.TTL}, nil
}

// TestConcurrentCallersFindMutants: the fights would find these mistakes.
func TestConcurrentCallersFindMutants(t *testing.T) {
	for name, of := range map[string]func(dedupe.Store) dedupe.Store{
		"claim looks first":         func(s dedupe.Store) dedupe.Store { return looksFirst{s} },
		"renew ignores the token":   func(s dedupe.Store) dedupe.Store { return renewsAnyones{s} },
		"release ignores the token": func(s dedupe.Store) dedupe.Store { return releasesAnyones{s} },
		"complete is lost":          func(s dedupe.Store) dedupe.Store { return completesNothing{s} },
	} {
		c := &ticking{}
		if checkFights(of(memstore.New(c.now)), c.advance, 1, 200) == nil {
			t.Errorf("not found: %s", name)
		}
	}
}
