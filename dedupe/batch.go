package dedupe

import (
	"cmp"
	"slices"
	"sync"
)

// BatchVerdict is what a delivery that carries several events shall do.
type BatchVerdict struct {
	// Verdict is that on the delivery as a whole; it has no Claim of its own.
	Verdict
	// Claims are set when the delivery may go to the upstream. They must be
	// settled, all together.
	Claims Claims
	// Done are the indices of the events that are done already. With Claims the
	// upstream will get these events again, since a signed body cannot be cut.
	Done []int
}

// Claims are the claims of one delivery.
type Claims []*Claim

// atOnce is how many events of a batch the store is asked for at a time.
const atOnce = 64

// settledAtOnce is how many of its claims are settled at a time: enough that a
// store that is away costs few time-outs, and few enough for one that is slow.
const settledAtOnce = 1000

// AdmitAll decides what a delivery of several events shall do. Two events with
// one key are one event.
//
// The events are claimed in the order of their keys, the first one alone and the
// others in groups, so that copies of a batch meet at its first event. If one of
// them is under way elsewhere, or held, the claims that the delivery has are
// released and it shall come again: it never waits for another delivery. If all
// are done, it is a duplicate; else it goes to the upstream as a whole.
//
// An error is that of Admit.
func (g *Gate) AdmitAll(events []Event, p Policy) (BatchVerdict, error) {
	order := inOrder(events)
	var b BatchVerdict
	for size := 1; len(order) > 0; size = atOnce {
		group := order[:min(size, len(order))]
		order = order[len(group):]
		verdicts := make([]Verdict, len(group))
		errs := make([]error, len(group))
		inParallel(len(group), func(i int) { verdicts[i], errs[i] = g.admitOne(events[group[i]], p) })
		var failed error
		for i, v := range verdicts {
			failed = cmp.Or(failed, errs[i])
			b.add(group[i], v)
		}
		if failed != nil || b.Result == ResultInFlight || b.Result == ResultHeld {
			b.Claims.Settle(OutcomeNotSent) // what the store cannot take now waits
			b.Claims, b.Done = nil, nil
			return b, failed
		}
	}
	return b, nil
}

// inOrder are the indices of events in the order of their keys, each key once.
func inOrder(events []Event) []int {
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(events[i].Key, events[j].Key) })
	return slices.CompactFunc(order, func(i, j int) bool { return events[i].Key == events[j].Key })
}

// inParallel calls do for all numbers below n and waits for the end.
func inParallel(n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// admitOne is Admit without waiting for another delivery. It waits only for what
// the store is being asked, and whoever asks waits for nothing else.
func (g *Gate) admitOne(e Event, p Policy) (Verdict, error) {
	f, first := g.flights.join(e.Key)
	if first {
		v, err := g.ask(f, e, p)
		if !f.over() && v.Claim == nil {
			g.flights.end(f, v, nil)
		}
		return v, err
	}
	select {
	case <-f.asked.wait():
	case <-f.done.wait():
	}
	if f.over() {
		return f.verdict.of(e), f.err
	}
	return underWay(p), nil
}

// strength orders the results of the events of one delivery: the strongest is
// that of the delivery.
var strength = map[Result]int{
	ResultDuplicate: 1, ResultFirst: 2, ResultRetry: 3, ResultPossibleRepeat: 4, ResultInFlight: 5, ResultHeld: 6,
}

// add adds the verdict on the event of that index.
func (b *BatchVerdict) add(index int, v Verdict) {
	switch {
	case v.Claim != nil:
		b.Claims = append(b.Claims, v.Claim)
	case v.Result == ResultDuplicate:
		b.Done = append(b.Done, index)
	}
	if strength[v.Result] > strength[b.Result] {
		b.Result = v.Result
	}
	if len(b.Claims) > 0 && len(b.Done) > 0 && strength[b.Result] < strength[ResultPossibleRepeat] {
		b.Result = ResultPossibleRepeat // the upstream gets what is done again
	}
	if v.DoneAt.After(b.DoneAt) {
		b.DoneAt = v.DoneAt
	}
	b.RetryAfter = max(b.RetryAfter, v.RetryAfter)
	b.Reused = b.Reused || v.Reused
	if b.StoreError == nil {
		b.StoreError = v.StoreError
	}
}

// Attempt is the highest attempt of the events.
func (cs Claims) Attempt() (n int) {
	for _, c := range cs {
		n = max(n, c.Attempt())
	}
	return n
}

// Settle settles all claims with one outcome, as [Claim.Settle], and returns the
// first of the errors.
func (cs Claims) Settle(o Outcome) error {
	var err error
	for group := range slices.Chunk(cs, settledAtOnce) {
		errs := make([]error, len(group))
		inParallel(len(group), func(i int) { errs[i] = group[i].Settle(o) })
		err = cmp.Or(err, cmp.Or(errs...))
	}
	return err
}
