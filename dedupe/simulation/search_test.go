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

// The times of the search: a step is half a lease of a's, or all of b's, and a
// record lives for five.
const (
	modelStep = 10 * time.Second
	modelTTL  = 5 * modelStep
	modelMark = 7
)

var modelLeases = map[string]time.Duration{"a": 2 * modelStep, "b": modelStep}

// step is one thing that can happen to a record: the time passes, or somebody
// does something.
type step struct {
	op  string
	who string // a token
}

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

// known is what the claimants know of their claims.
type known struct{ a, b claimant }

type claimant struct {
	attempt int
	doubted bool
}

func (k *known) of(who string) *claimant {
	if who == "a" {
		return &k.a
	}
	return &k.b
}

// ask is what a store is asked in a step.
func (k known) ask(s step) asked {
	c := k.of(s.who)
	return asked{
		op:   s.op,
		hold: dedupe.Hold{Token: s.who, Attempt: c.attempt, Doubted: c.doubted, Lease: modelLeases[s.who], TTL: modelTTL},
		done: dedupe.Done{Mark: modelMark, TTL: modelTTL},
	}
}

// learn notes what a claimant was told.
func (k *known) learn(s step, r dedupe.Record) {
	if r.OwnedBy(s.who) {
		*k.of(s.who) = claimant{r.Attempt, r.Doubted}
	}
}

// model is a record that follows the transition table.
type model struct {
	record dedupe.Record
	known
}

func (m model) next(s step) (model, told) {
	if s.op == "wait" {
		m.record = later(m.record, modelStep)
		return m, told{}
	}
	var out told
	m.record, out = transition(m.record, m.ask(s))
	m.learn(s, out.record)
	return m, out
}

// machine is a store under the same steps.
type machine struct {
	store dedupe.Store
	key   string
	wait  func(time.Duration)
	known
}

func newMachine(of func(dedupe.Store) dedupe.Store) *machine {
	now := epoch
	return &machine{
		store: of(memstore.New(func() time.Time { return now })),
		key:   "model:evt", wait: func(d time.Duration) { now = now.Add(d) },
	}
}

func asItIs(s dedupe.Store) dedupe.Store { return s }

func (m *machine) next(s step) (told, error) {
	if s.op == "wait" {
		m.wait(modelStep)
		return told{}, nil
	}
	out, err := ask(m.store, m.key, m.ask(s))
	m.learn(s, out.record)
	return out, err
}

// ask asks a store.
func ask(s dedupe.Store, key string, a asked) (out told, err error) {
	ctx := context.Background()
	switch a.op {
	case "claim", "take over":
		out.record, err = s.Claim(ctx, key, a.hold, a.op == "take over")
	case "renew":
		out.owned, err = s.Renew(ctx, key, a.hold)
	case "complete":
		err = s.Complete(ctx, key, a.done)
	case "release":
		err = s.Release(ctx, key, a.hold)
	case "doubt":
		err = s.Doubt(ctx, key, a.hold)
	case "look up":
		out.record, err = s.Lookup(ctx, key)
	default:
		panic(a.op)
	}
	return out, err
}

// replay does path on a new machine and reports where it differs from the model.
func replay(path []step, real *machine) error {
	ideal := model{}
	for i, s := range path {
		got, err := real.next(s)
		if err != nil {
			return fmt.Errorf("%v: %w", path[:i+1], err)
		}
		var want told
		ideal, want = ideal.next(s)
		if got != want {
			return fmt.Errorf("%v: got %+v, the model says %+v", path[:i+1], got, want)
		}
	}
	got, err := ask(real.store, real.key, asked{op: "look up"})
	if err != nil || got.record != ideal.record {
		return fmt.Errorf("%v: got %+v, %v, the model says %+v", path, got.record, err, ideal.record)
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
	paths := map[model][]step{{}: nil}
	edges := 0
	for queue := []model{{}}; len(queue) > 0; queue = queue[1:] {
		from, path := queue[0], paths[queue[0]]
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
			if _, seen := paths[to]; !seen && to.record.Attempt <= maxAttempt {
				paths[to] = longer
				queue = append(queue, to)
			}
		}
	}
	t.Logf("%d states, %d steps", len(paths), edges)
	if len(paths) < 100 {
		t.Error("the search is broken: too few states")
	}
}

// lawful is what must hold of every step, whatever the table says.
func lawful(from dedupe.Record, s step, to dedupe.Record, out told) error {
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
