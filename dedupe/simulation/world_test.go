// Package simulation is the proof of the state machine: several gateways, the
// senders and the upstream run in one process under a clock and a scheduler
// that a seed determines, with every fault that the promise names. The store is
// the one in memory, the one on files, or a real Redis whose keys are moved with
// that clock. Every history is checked against the promise, and everything that
// the store answers in it against the transition table (model_test.go).
//
// Such a history does one thing at a time. That the steps of a store are atomic
// is shown by callers who fight over few records at the same time: an order of
// their calls that the table explains must exist (linear_test.go).
//
//	go test ./dedupe/simulation                              # a few thousand histories
//	go test ./dedupe/simulation -run Keep -histories 200000  # many
//	go test ./dedupe/simulation -run Keep -seed 42 -v        # one again, told step by step
//	go test ./dedupe/simulation -run Follows -depth 6        # every sequence of 6 steps of a record
package simulation

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// world is one history. Its goroutine, the scheduler, does one thing at a time
// and then waits until every goroutine of the gateways is blocked again; only
// the scheduler draws from rng, so that the seed determines what happens.
type world struct {
	rng     *rand.Rand
	plan    plan
	mutant  mutant
	store   dedupe.Store
	serving *gateway // whose operation the store runs now

	now   atomic.Int64 // since the start
	queue queue

	mu    sync.Mutex
	posts []post

	slots    []*gateway // the process that serves now, by place
	gateways []*gateway // every process that ever was
	events   map[string]*event
	attempts []*attempt
	claims   map[string]*lease // by token
	outages  []span
	forgot   bool // the store has lost what it knew

	recording  bool
	story      strings.Builder
	violations []string
	steps      int
}

var epoch = time.Unix(1_767_225_600, 0)

func (w *world) time() time.Duration { return time.Duration(w.now.Load()) }

// happening is something that the scheduler will do.
type happening struct {
	at  time.Duration
	tie uint64
	do  func()
}

type queue []happening

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].tie < q[j].tie
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(happening)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// at plans do; what is planned for one moment happens in random order.
func (w *world) at(t time.Duration, do func()) {
	heap.Push(&w.queue, happening{max(t, w.time()), w.rng.Uint64(), do})
}

func (w *world) after(d time.Duration, do func()) { w.at(w.time()+d, do) }

// post is what a goroutine of a gateway tells the scheduler. Posts of one step
// are handled in the order of their fields, not in the order in which the
// goroutines happened to run.
type post struct {
	kind postKind
	gate int
	name string
	id   int64
	do   func()
}

type postKind int

const (
	postTimer postKind = iota
	postRequest
	postAdmitted
	postSettled
	postTold
	postClosed
)

func (w *world) post(p post) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posts = append(w.posts, p)
}

// quiesce waits until every goroutine is blocked and handles what they posted.
func (w *world) quiesce() {
	for {
		synctest.Wait()
		w.mu.Lock()
		posts := w.posts
		w.posts = nil
		w.mu.Unlock()
		if len(posts) == 0 {
			return
		}
		order := func(a, b post) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.gate, b.gate), strings.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
		}
		slices.SortStableFunc(posts, order)
		for i, p := range posts {
			if i > 0 && order(posts[i-1], p) == 0 {
				w.violate("the simulation: two posts that only chance can order: %+v", p)
			}
			p.do()
		}
	}
}

// run lets the history happen to its end.
func (w *world) run() {
	for len(w.queue) > 0 {
		h := heap.Pop(&w.queue).(happening)
		w.now.Store(int64(h.at))
		w.steps++
		if w.steps > 200_000 {
			w.violate("the simulation: no end in sight")
			return
		}
		h.do()
		w.quiesce()
	}
}

func (w *world) note(format string, args ...any) {
	if w.recording {
		fmt.Fprintf(&w.story, "%14v  %s\n", w.time().Round(time.Microsecond), fmt.Sprintf(format, args...))
	}
}

func (w *world) violate(format string, args ...any) {
	v := fmt.Sprintf(format, args...)
	w.note("VIOLATION %s", v)
	w.violations = append(w.violations, v)
}

// chance is true with probability p.
func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

// between draws a duration evenly.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

// span is a stretch of time.
type span struct{ from, to time.Duration }

func inside(spans []span, t time.Duration) bool {
	for _, s := range spans {
		if s.from <= t && t < s.to {
			return true
		}
	}
	return false
}

// covered is how much of w the spans cover together.
func covered(w span, spans []span) time.Duration {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var sum time.Duration
	for at := w.from; len(spans) > 0; spans = spans[1:] {
		from, to := max(at, spans[0].from), min(w.to, spans[0].to)
		if to > from {
			sum += to - from
			at = to
		}
	}
	return sum
}
