package dedupe

import (
	"context"
	"errors"
	"time"
)

// Policy is how a route wants its events handled.
type Policy struct {
	// TTL is how long an event is remembered.
	TTL time.Duration
	// Lease is how long a claim holds without being renewed.
	Lease time.Duration
	// Wait is how long a copy waits for the delivery in flight.
	Wait time.Duration
	// Hold keeps an event in doubt back instead of trying it again.
	Hold bool
	// ForwardOnError lets a delivery through, marked as a possible repeat, when
	// the store cannot be asked.
	ForwardOnError bool
}

// Event is one delivery of an event.
type Event struct {
	// Key names the event; see [Key].
	Key string
	// Mark is the small fingerprint of this delivery's body; see [MarkOf].
	Mark uint16
	// Waiting, if set, is called before the delivery begins to wait for another
	// one: what it holds (its body) will not be needed any more.
	Waiting func()
}

// Verdict is what a delivery shall do.
type Verdict struct {
	Result Result
	// Claim is set when the delivery may go to the upstream. It must be settled.
	Claim *Claim
	// DoneAt is when the event was done, if it is a duplicate and that is known.
	DoneAt time.Time
	// Reused says that a duplicate came with another body than the event that is
	// done.
	Reused bool
	// RetryAfter is when it makes sense to come again, if now was too early.
	RetryAfter time.Duration
	// StoreError is why the store could not be asked, when the delivery goes
	// through all the same.
	StoreError error

	mark   uint16
	marked bool
}

// Gate lets the first delivery of each event through and answers for the
// others. One Gate serves all routes of a process that share a store.
type Gate struct {
	store    Store
	times    *Deadlines
	clock    Clock
	observer Observer
	tokens   tokens
	flights  flights
	renewals renewals
	backlog  *backlog
	usage    usage
	spool    Spool // or nil
}

// Options are what a Gate may be told. The zero value is usable.
type Options struct {
	// Timeout bounds one operation of the store. Default 1s.
	Timeout time.Duration
	// Clock is for tests. Default the system's.
	Clock Clock
	// Observer is told of what happens outside of any delivery. Default nobody.
	Observer Observer
	// Spool keeps what the store could not be told. It is closed with the Gate.
	// Default: what is left at the end of the process is lost.
	Spool Spool
}

// New returns a Gate in front of store, which it closes in [Gate.Close].
func New(store Store, o Options) *Gate {
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	g := &Gate{
		store:    store,
		spool:    o.Spool,
		times:    NewDeadlines(o.Timeout),
		clock:    o.Clock,
		observer: o.Observer,
		tokens:   newTokens(),
		renewals: renewals{clock: o.Clock},
		flights:  flights{byKey: make(map[string]*flight)},
	}
	g.backlog = newBacklog(g)
	g.usage.idle.L = &g.usage.mu
	g.restore()
	return g
}

// Admit decides what e shall do. It may wait, up to p.Wait, for another
// delivery of the event; it gives up waiting when ctx ends. The store is asked
// whatever becomes of ctx.
//
// An error means that the store could not be asked: the event is neither free
// nor done, and whatever the question may have left in the store is taken back
// in the background.
func (g *Gate) Admit(ctx context.Context, e Event, p Policy) (Verdict, error) {
	f, first := g.flights.join(e.Key)
	if !first {
		return g.wait(ctx, f, e, p)
	}
	v, err := g.ask(f, e, p)
	if v.Result == ResultInFlight && !f.over() {
		go g.watch(f, p)
		return g.wait(ctx, f, e, p)
	}
	return v, err
}

// ask asks the store for the event of f, which the caller has made. It ends f,
// unless the event is under way: here, with a Claim, or elsewhere.
func (g *Gate) ask(f *flight, e Event, p Policy) (Verdict, error) {
	hold := Hold{Token: g.tokens.next(), Lease: p.Lease, TTL: p.TTL}
	r, err := g.claim(e.Key, hold, p)
	switch {
	case err != nil && p.ForwardOnError:
		hold.Attempt, hold.Doubted = 1, true
		f.asked.give()
		return Verdict{Result: ResultPossibleRepeat, Claim: g.newClaim(e, hold, f), StoreError: err}, nil
	case err != nil:
		if !errors.Is(err, ErrCorrupt) {
			g.backlog.add(settlement{kind: release, key: e.Key, hold: hold}, err)
		}
		g.flights.end(f, Verdict{}, err)
		return Verdict{}, err
	case r.OwnedBy(hold.Token):
		hold.Attempt, hold.Doubted = r.Attempt, r.Doubted
		f.asked.give()
		return Verdict{Result: resultOf(r), Claim: g.newClaim(e, hold, f)}, nil
	case r.State == InFlight && r.LeaseLeft > 0:
		f.asked.give()
		return underWay(p), nil
	}
	v := g.verdictOn(r, p)
	g.flights.end(f, v, nil)
	return v.of(e), nil
}

// underWay is the verdict on a copy of an event that another delivery has in the
// upstream.
func underWay(p Policy) Verdict {
	return Verdict{Result: ResultInFlight, RetryAfter: max(time.Second, p.Wait)}
}

// claim asks the store, for as long as one operation may take.
func (g *Gate) claim(key string, hold Hold, p Policy) (Record, error) {
	ctx, err := g.begin()
	if err != nil {
		return Record{}, err
	}
	defer g.usage.end()
	r, err := g.store.Claim(ctx, key, hold, !p.Hold)
	if err == nil && (r.State == Absent || r.State == Failed) {
		err = errors.New("the store neither granted the claim nor named its owner")
	}
	return r, err
}

// verdictOn is what a delivery shall do that did not get its claim and does not
// wait.
func (g *Gate) verdictOn(r Record, p Policy) Verdict {
	switch {
	case r.State == Completed:
		v := Verdict{Result: ResultDuplicate, mark: r.Mark, marked: true}
		if age := p.TTL - r.Left; r.Left > 0 && age >= 0 {
			v.DoneAt = g.clock.Now().Add(-age)
		}
		return v
	case p.Hold && r.LeaseLeft == 0:
		return Verdict{Result: ResultHeld, RetryAfter: p.Lease}
	}
	return Verdict{Result: ResultInFlight, RetryAfter: max(time.Second, r.LeaseLeft)}
}

// of is the verdict on an event for one delivery of it.
func (v Verdict) of(e Event) Verdict {
	v.Reused = v.marked && v.mark != e.Mark
	return v
}

// wait is for a copy: it waits until the delivery in flight has ended. Whether
// there is one, another copy may just be asking the store; that is waited for in
// any case.
func (g *Gate) wait(ctx context.Context, f *flight, e Event, p Policy) (Verdict, error) {
	if f.over() {
		return f.verdict.of(e), f.err
	}
	tooLong := underWay(p)
	g.flights.stay(f, g.clock.Now().Add(p.Wait))
	rang, stop := alarm(g.clock, p.Wait)
	defer stop()
	if !f.underWay() {
		select {
		case <-f.asked.wait():
		case <-f.done.wait():
			return f.verdict.of(e), f.err
		case <-ctx.Done():
			return tooLong, nil
		}
	}
	if e.Waiting != nil {
		e.Waiting()
	}
	select {
	case <-f.done.wait():
	case <-rang:
	case <-ctx.Done():
	}
	if f.over() {
		return f.verdict.of(e), f.err
	}
	return tooLong, nil
}

// The pace of watching an event that another process is delivering: one look
// for all copies that wait for it here, at first soon, then rarer.
const (
	firstLook = 25 * time.Millisecond
	lastPace  = 500 * time.Millisecond
)

// watch looks after an event that another process is delivering, for all
// copies that wait for it here, until it has ended or nobody waits any more.
func (g *Gate) watch(f *flight, p Policy) {
	g.flights.stay(f, g.clock.Now().Add(p.Wait))
	verdict := underWay(p)
	for pace := firstLook; ; pace = min(pace*3/2, lastPace) {
		left := f.stays().Sub(g.clock.Now())
		if left <= 0 {
			break
		}
		rang, stop := alarm(g.clock, min(pace, left))
		select {
		case <-rang:
		case <-g.backlog.closing:
			stop()
			g.flights.end(f, verdict, nil)
			return
		}
		r, err := g.lookup(f.key)
		if err != nil || r.State == InFlight && r.LeaseLeft > 0 {
			continue
		}
		verdict = Verdict{Result: ResultInFlight, RetryAfter: time.Second}
		if r.State == Completed {
			verdict = g.verdictOn(r, p)
		} else if r.State == InDoubt {
			verdict.RetryAfter = max(time.Second, r.LeaseLeft)
		}
		break
	}
	g.flights.end(f, verdict, nil)
}

func (g *Gate) lookup(key string) (Record, error) {
	ctx, err := g.begin()
	if err != nil {
		return Record{}, err
	}
	defer g.usage.end()
	return g.store.Lookup(ctx, key)
}

// begin begins one store operation, unless the gate is closed; g.usage.end must
// follow. Its context is never that of a sender, who may hang up at any time.
func (g *Gate) begin() (context.Context, error) {
	if !g.usage.begin() {
		return nil, errClosed
	}
	return g.times.Next(), nil
}

// Bind ties signed bytes to the first id that came with them, for ttl, and
// reports whether id is that one. See [BindingKey] and [BindingValue].
func (g *Gate) Bind(key, value string, ttl time.Duration) (bool, error) {
	ctx, err := g.begin()
	if err != nil {
		return false, err
	}
	defer g.usage.end()
	bound, err := g.store.Bind(ctx, key, value, ttl)
	return bound == value, err
}

// Close writes what still waits for the store, for as long as ctx lasts,
// reports what it could not write to the Observer, and closes the store. It is
// called once. A claim that is settled after it is reported as lost.
func (g *Gate) Close(ctx context.Context) error {
	g.backlog.close(ctx)
	g.usage.close()
	g.times.Close()
	err := g.store.Close()
	if g.spool != nil {
		err = errors.Join(err, g.spool.Close())
	}
	return err
}
