package simulation

import (
	"context"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// compared is a store whose every answer, and every record after it, must be
// what the model says.
type compared struct {
	dedupe.Store
	w     *world
	ideal map[string]noted
}

// noted is a record of the model as it was at a time.
type noted struct {
	record dedupe.Record
	at     time.Duration
}

// drifting is a store whose times are off by what really passes.
type drifting interface{ drift() time.Duration }

// rounding is how far a store may round its times.
const rounding = time.Millisecond

func (c *compared) slack() time.Duration {
	if d, ok := c.Store.(drifting); ok {
		return d.drift() + rounding
	}
	return rounding
}

func (c *compared) do(key string, a asked) (told, error) {
	now := c.w.time()
	before := c.ideal[key]
	r := later(before.record, now-before.at)
	got, err := ask(c.Store, key, a)
	var after dedupe.Record
	if err == nil {
		after, err = c.Store.Lookup(context.Background(), key)
	}
	if err != nil {
		c.w.violate("the simulation: %s of %s: %v", a.op, key, err)
		return got, err
	}
	slack := c.slack()
	for _, r := range []dedupe.Record{r, later(r, slack)} {
		for _, o := range outcomes(r, a) {
			if near(o.record, after, slack) && near(o.told.record, got.record, slack) && o.told.owned == got.owned {
				c.ideal[key] = noted{o.record, now}
				return got, nil
			}
		}
	}
	c.w.violate("model: %s of %s #%d made %+v of %+v and said %+v", a.op, key, count(a.hold.Token), after, r, got)
	c.ideal[key] = noted{after, now}
	return got, nil
}

// forget lets the store lose all it knows.
func (c *compared) forget() {
	if err := c.Store.(interface{ forget() error }).forget(); err != nil {
		c.w.violate("the simulation: the store cannot forget: %v", err)
	}
	clear(c.ideal)
	c.w.note("store: forgets everything")
	c.w.forgot = true
}

// near reports whether got is want but for some slack in its times.
func near(want, got dedupe.Record, slack time.Duration) bool {
	lease, left := want.LeaseLeft-got.LeaseLeft, want.Left-got.Left
	want.LeaseLeft, want.Left = got.LeaseLeft, got.Left
	return want == got && lease.Abs() <= slack && left.Abs() <= slack
}

func (c *compared) Claim(_ context.Context, key string, h dedupe.Hold, takeover bool) (dedupe.Record, error) {
	op := "claim"
	if takeover {
		op = "take over"
	}
	got, err := c.do(key, asked{op: op, hold: h})
	return got.record, err
}

func (c *compared) Renew(_ context.Context, key string, h dedupe.Hold) (bool, error) {
	got, err := c.do(key, asked{op: "renew", hold: h})
	return got.owned, err
}

func (c *compared) Complete(_ context.Context, key string, d dedupe.Done) error {
	_, err := c.do(key, asked{op: "complete", done: d})
	return err
}

func (c *compared) Release(_ context.Context, key string, h dedupe.Hold) error {
	_, err := c.do(key, asked{op: "release", hold: h})
	return err
}

func (c *compared) Doubt(_ context.Context, key string, h dedupe.Hold) error {
	_, err := c.do(key, asked{op: "doubt", hold: h})
	return err
}

func (c *compared) Lookup(_ context.Context, key string) (dedupe.Record, error) {
	got, err := c.do(key, asked{op: "look up"})
	return got.record, err
}
