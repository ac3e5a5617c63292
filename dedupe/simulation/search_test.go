package simulation

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/memstore"
)

var depthFlag = flag.Int("depth", 4, "how many steps the exhaustive search goes deep")

// steps are all that can happen with two claimants.
var steps = func() []step {
	all := []step{{op: "wait"}}
	for _, who := range []string{"a", "b"} {
		for _, op := range []string{"claim", "take over", "renew", "complete", "release", "doubt"} {
			all = append(all, step{op, who})
		}
	}
	return all
}()

// machine is a store under the steps of a model.
type machine struct {
	store     dedupe.Store
	key       string
	wait      func(time.Duration)
	claimants map[string]claimant
}

func newMachine(of func(dedupe.Store) dedupe.Store) *machine {
	now := epoch
	return &machine{
		store: of(memstore.New(func() time.Time { return now })),
		key:   "model:evt", wait: func(d time.Duration) { now = now.Add(d) },
		claimants: make(map[string]claimant),
	}
}

func asItIs(s dedupe.Store) dedupe.Store { return s }

func (m *machine) next(s step) (out reply, err error) {
	ctx := context.Background()
	c := m.claimants[s.who]
	h := dedupe.Hold{Token: s.who, Attempt: c.attempt, Doubted: c.doubted, Lease: modelLease, TTL: modelTTL}
	switch s.op {
	case "claim", "take over":
		out.record, err = m.store.Claim(ctx, m.key, h, s.op == "take over")
		if out.record.OwnedBy(s.who) {
			m.claimants[s.who] = claimant{out.record.Attempt, out.record.Doubted}
		}
	case "renew":
		out.owned, err = m.store.Renew(ctx, m.key, h)
	case "complete":
		err = m.store.Complete(ctx, m.key, dedupe.Done{Mark: modelMark, TTL: modelTTL})
	case "release":
		err = m.store.Release(ctx, m.key, h)
	case "doubt":
		err = m.store.Doubt(ctx, m.key, h)
	case "wait":
		m.wait(modelStep)
	}
	return out, err
}

func (m *machine) record() dedupe.Record {
	r, err := m.store.Lookup(context.Background(), m.key)
	if err != nil {
		panic(err)
	}
	return r
}

// replay does path on a new machine and reports where it differs from the model.
func replay(path []step, real *machine) error {
	ideal := model{}
	for i, s := range path {
		got, err := real.next(s)
		if err != nil {
			return fmt.Errorf("%v: %w", path[:i+1], err)
		}
		var want reply
		ideal, want = ideal.next(s)
		if got != want {
			return fmt.Errorf("%v: got %+v, the model says %+v", path[:i+1], got, want)
		}
	}
	if got := real.record(); got != ideal.record {
		return fmt.Errorf("%v: got %+v, the model says %+v", path, got, ideal.record)
	}
	return nil
}

// search tries every sequence of depth steps, until one differs.
func search(path []step, depth int, start func() *machine) error {
	if len(path) == depth {
		return replay(path, start())
	}
	for _, s := range steps {
		if err := search(append(path, s), depth, start); err != nil {
			return err
		}
	}
	return nil
}

// TestStoreFollowsTheModel tries every sequence of a few steps.
func TestStoreFollowsTheModel(t *testing.T) {
	if err := search(nil, *depthFlag, func() *machine { return newMachine(asItIs) }); err != nil {
		t.Error(err)
	}
}

// TestModelFindsMutants: the search would find these mistakes.
func TestModelFindsMutants(t *testing.T) {
	for name, of := range map[string]func(dedupe.Store) dedupe.Store{
		"renew ignores the token":          func(s dedupe.Store) dedupe.Store { return renewsAnyones{s} },
		"release ignores the token":        func(s dedupe.Store) dedupe.Store { return releasesAnyones{s} },
		"release deletes the record":       newDeletes,
		"takeover does not mark the doubt": func(s dedupe.Store) dedupe.Store { return forgetsDoubt{s} },
		"doubt is a release":               func(s dedupe.Store) dedupe.Store { return doubtReleases{s} },
		"complete is lost":                 func(s dedupe.Store) dedupe.Store { return completesNothing{s} },
		"renew does not prolong":           func(s dedupe.Store) dedupe.Store { return renewsNothing{s} },
	} {
		if search(nil, 4, func() *machine { return newMachine(of) }) == nil {
			t.Errorf("not found: %s", name)
		}
	}
}

// maxAttempt bounds the states of the model.
const maxAttempt = 4

// TestEveryReachableStateFollowsTheModel tries every step in every state that
// any sequence of steps leads to, and checks what must hold of every step.
func TestEveryReachableStateFollowsTheModel(t *testing.T) {
	type state struct {
		record dedupe.Record
		a, b   claimant
	}
	of := func(m model) state { return state{m.record, m.claimants["a"], m.claimants["b"]} }
	paths := map[state][]step{of(model{}): nil}
	models := map[state]model{of(model{}): {}}
	edges := 0
	for queue := []state{of(model{})}; len(queue) > 0; queue = queue[1:] {
		from := models[queue[0]]
		path := paths[queue[0]]
		for _, s := range steps {
			to, out := from.next(s)
			edges++
			longer := append(append([]step(nil), path...), s)
			if err := replay(longer, newMachine(asItIs)); err != nil {
				t.Fatal(err)
			}
			if err := lawful(from.record, s, to.record, out); err != nil {
				t.Fatalf("%v: %v", longer, err)
			}
			if _, seen := paths[of(to)]; !seen && to.record.Attempt <= maxAttempt {
				paths[of(to)], models[of(to)] = longer, to
				queue = append(queue, of(to))
			}
		}
	}
	t.Logf("%d states, %d steps", len(paths), edges)
	if len(paths) < 100 {
		t.Error("the search is broken: too few states")
	}
}

// lawful is what must hold of every step, whatever the table says.
func lawful(from dedupe.Record, s step, to dedupe.Record, out reply) error {
	expired := s.op == "wait" && from.Left <= modelStep
	owned := from.State == dedupe.InFlight && from.LeaseLeft > 0
	switch {
	case from.State == dedupe.Completed && to.State != dedupe.Completed && !expired:
		return fmt.Errorf("done became %s", to.State)
	case to.State == dedupe.Completed && from.State != dedupe.Completed && s.op != "complete":
		return fmt.Errorf("%s made the event done", s.op)
	case owned && to.State == dedupe.InFlight && to.Token != from.Token:
		return fmt.Errorf("%s took the event from %s, whose lease runs", s.who, from.Token)
	case owned && to.State != dedupe.InFlight && s.who != from.Token && s.op != "complete" && !expired:
		return fmt.Errorf("%s ended the claim of %s", s.who, from.Token)
	case (out.owned || out.record.OwnedBy(s.who)) && !to.OwnedBy(s.who):
		return fmt.Errorf("%s was told that it owns the event", s.who)
	case from.Doubted && !to.Doubted && to.State != dedupe.Completed && !expired:
		return fmt.Errorf("the doubt was forgotten")
	case from.State == dedupe.InFlight && to.State == dedupe.InFlight && from.Token != to.Token && !to.Doubted:
		return fmt.Errorf("a takeover was not marked")
	case from.State == dedupe.InDoubt && !from.Doubted:
		return fmt.Errorf("in doubt, and not marked")
	}
	return nil
}
