package simulation

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

var errLost = errors.New("the store does not answer")

// client is the store as one process sees it: every operation travels, may get
// lost on the way there or back, or arrive after its caller has given up.
type client struct{ g *gateway }

// call is one operation under way.
type call struct {
	g      *gateway
	op     string
	key    string
	token  string
	issued time.Duration
	apply  func()
	over   bool
	err    error
	wake   chan struct{}
}

// do has the scheduler carry out apply and returns when the answer, or the
// error, has come back.
func (c client) do(op, key, token string, apply func()) error {
	if c.g.buried.Load() {
		runtime.Goexit()
	}
	k := &call{g: c.g, op: op, key: key, token: token, apply: apply, wake: make(chan struct{})}
	c.g.w.post(post{kind: postRequest, gate: c.g.id, name: op + " " + key, id: count(token), do: k.send})
	<-k.wake
	if c.g.buried.Load() {
		runtime.Goexit()
	}
	return k.err
}

// count is the part of a token that is not random.
func count(token string) int64 {
	n, _ := strconv.ParseInt(token[strings.LastIndexByte(token, '-')+1:], 36, 64)
	return n
}

// send draws what becomes of the operation.
func (k *call) send() {
	w := k.g.w
	k.issued = w.time()
	k.g.calls = append(k.g.calls, k)
	there, back := w.between(0, 2*time.Millisecond), w.between(0, 2*time.Millisecond)
	soon := w.between(there, there+3*time.Millisecond)
	if w.chance(0.5) {
		soon = storeTimeout
	}
	var n network
	if w.time() < w.plan.quiet {
		n = w.plan.network
	}
	fail := func() { k.answer(errLost) }
	switch {
	case k.cut(), w.chance(n.lostRequest):
		w.after(soon, fail)
	case w.chance(n.lostReply):
		w.after(there, k.arrive)
		w.after(soon, fail)
	case w.chance(n.late):
		w.after(storeTimeout, fail)
		w.after(w.between(storeTimeout, 2*leaseTime), k.arrive)
	default:
		if w.chance(n.slow) {
			there, back = w.between(0, storeTimeout/2), w.between(0, storeTimeout/2)
		}
		w.after(there, func() {
			k.arrive()
			w.after(back, func() {
				if k.cut() {
					w.after(storeTimeout, fail)
				} else {
					k.answer(nil)
				}
			})
		})
	}
}

func (k *call) cut() bool {
	t := k.g.w.time()
	return inside(k.g.w.outages, t) || inside(k.g.cutOff, t)
}

// arrive lets the store carry out the operation, unless it is cut off.
func (k *call) arrive() {
	if !k.cut() {
		k.g.w.serving = k.g
		k.apply()
		return
	}
	k.err = errLost // an answer that comes nevertheless is no answer
}

// answer brings the reply, or an error, back to the process.
func (k *call) answer(err error) {
	k.g.act(func() {
		w := k.g.w
		if late := w.time() > k.issued+storeTimeout+10*time.Millisecond; late && w.chance(0.5) {
			err = errLost // it thawed, and its own time-out fired first
		}
		k.finish(err)
	})
}

func (k *call) finish(err error) {
	if k.over {
		return
	}
	k.over = true
	for i, c := range k.g.calls {
		if c == k {
			k.g.calls = append(k.g.calls[:i], k.g.calls[i+1:]...)
			break
		}
	}
	if k.err == nil {
		k.err = err
	}
	w := k.g.w
	if k.err != nil {
		w.note("g%d: %s %s #%d is unanswered", k.g.id, k.op, k.key, count(k.token))
		k.g.failedAt[k.op+" "+k.key] = w.time()
		if l := w.claims[k.token]; l != nil && k.op == "renew" {
			l.cutOff = append(l.cutOff, span{k.issued, w.time() + l.length/6})
		}
	}
	if k.op == "claim" {
		k.g.claimed[k.key] = k.token
	}
	close(k.wake)
}

// lease is what the store was told about one claim.
type lease struct {
	key       string
	length    time.Duration
	claimedAt time.Duration
	written   time.Duration // when its lease last started afresh
	ended     time.Duration // when it was released or done; -1 before
	cutOff    []span        // when it could not be renewed
}

// touch notes that a lease starts afresh.
func (w *world) touch(key string, h dedupe.Hold) {
	l := w.claims[h.Token]
	if l == nil {
		l = &lease{key: key, length: h.Lease, claimedAt: w.time()}
		w.claims[h.Token] = l
	}
	l.written, l.ended = w.time(), -1
}

func (c client) Claim(_ context.Context, key string, h dedupe.Hold, takeover bool) (r dedupe.Record, err error) {
	w := c.g.w
	lost := c.do("claim", key, h.Token, func() {
		r, err = w.store.Claim(context.Background(), key, h, takeover)
		w.note("store: g%d claims %s #%d: %s #%d attempt %d doubted %v lease %v", c.g.id, key, count(h.Token), r.State, count(r.Token), r.Attempt, r.Doubted, r.LeaseLeft)
		if r.OwnedBy(h.Token) {
			w.touch(key, h)
		}
	})
	if lost != nil {
		return dedupe.Record{}, lost
	}
	return r, err
}

func (c client) Renew(_ context.Context, key string, h dedupe.Hold) (ok bool, err error) {
	w := c.g.w
	lost := c.do("renew", key, h.Token, func() {
		ok, err = w.store.Renew(context.Background(), key, h)
		w.note("store: g%d renews %s #%d: %v", c.g.id, key, count(h.Token), ok)
		if ok {
			w.touch(key, h)
		}
	})
	if lost != nil {
		return false, lost
	}
	return ok, err
}

func (c client) Complete(_ context.Context, key string, d dedupe.Done) (err error) {
	w := c.g.w
	lost := c.do("complete", key, "", func() {
		err = w.store.Complete(context.Background(), key, d)
		w.note("store: g%d completes %s", c.g.id, key)
		if e := w.events[key]; e.doneAt < 0 {
			e.doneAt = w.time()
		}
		for _, l := range w.claims {
			if l.key == key && l.ended < 0 {
				l.ended = w.time()
			}
		}
	})
	if lost != nil {
		return lost
	}
	return err
}

func (c client) Release(_ context.Context, key string, h dedupe.Hold) (err error) {
	w := c.g.w
	lost := c.do("release", key, h.Token, func() {
		err = w.store.Release(context.Background(), key, h)
		w.note("store: g%d releases %s #%d", c.g.id, key, count(h.Token))
		if l := w.claims[h.Token]; l != nil {
			l.ended = w.time()
		}
	})
	if lost != nil {
		return lost
	}
	return err
}

func (c client) Doubt(_ context.Context, key string, h dedupe.Hold) (err error) {
	w := c.g.w
	lost := c.do("doubt", key, h.Token, func() {
		err = w.store.Doubt(context.Background(), key, h)
		r, _ := w.store.Lookup(context.Background(), key)
		w.note("store: g%d doubts %s #%d: %s #%d", c.g.id, key, count(h.Token), r.State, count(r.Token))
		if r.State == dedupe.InDoubt && r.Token == h.Token {
			w.touch(key, h)
		}
	})
	if lost != nil {
		return lost
	}
	return err
}

func (c client) Lookup(_ context.Context, key string) (r dedupe.Record, err error) {
	lost := c.do("lookup", key, "", func() { r, err = c.g.w.store.Lookup(context.Background(), key) })
	if lost != nil {
		return dedupe.Record{}, lost
	}
	return r, err
}

func (c client) Bind(context.Context, string, string, time.Duration) (string, error) {
	panic("the simulation binds nothing")
}

func (c client) Close() error { return nil }
