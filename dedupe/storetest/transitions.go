package storetest

import (
	"fmt"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// start brings an event into a state. The token "own" is the one that the
// operations under test use.
type start struct {
	name string
	make func(s suite, key string)
}

var starts = []start{
	{"absent", func(suite, string) {}},
	{"own", func(s suite, key string) { s.own(key, "own") }},
	{"own lapsed", func(s suite, key string) { s.own(key, "own"); s.Advance(lease + slack) }},
	{"other", func(s suite, key string) { s.own(key, "other") }},
	{"other lapsed", func(s suite, key string) { s.own(key, "other"); s.Advance(lease + slack) }},
	{"own in doubt", func(s suite, key string) { s.doubt(key, s.own(key, "own")) }},
	{"own in doubt lapsed", func(s suite, key string) { s.doubt(key, s.own(key, "own")); s.Advance(lease + slack) }},
	{"other in doubt", func(s suite, key string) { s.doubt(key, s.own(key, "other")) }},
	{"other in doubt lapsed", func(s suite, key string) { s.doubt(key, s.own(key, "other")); s.Advance(lease + slack) }},
	{"failed", func(s suite, key string) { s.release(key, s.own(key, "other")) }},
	{"failed doubted", func(s suite, key string) {
		s.own(key, "dead")
		s.Advance(lease + slack)
		s.release(key, s.own(key, "other"))
	}},
	{"done", func(s suite, key string) { s.own(key, "other"); s.complete(key, 7) }},
}

// operation is one step by the caller whose token is "own" and whose hold says
// attempt 3, not doubted.
type operation struct {
	name string
	do   func(s suite, key string)
}

var ownHold = func() dedupe.Hold { h := hold("own"); h.Attempt = 3; return h }()

var operations = []operation{
	{"claim", func(s suite, key string) { s.claim(key, "own", false) }},
	{"take over", func(s suite, key string) { s.claim(key, "own", true) }},
	{"renew", func(s suite, key string) {
		got := s.renew(key, ownHold)
		if now := s.lookup(key); got != now.OwnedBy("own") {
			s.t.Errorf("renew said %v, the record is %+v", got, now)
		}
	}},
	{"renew doubted", func(s suite, key string) { h := ownHold; h.Doubted = true; s.renew(key, h) }},
	{"complete", func(s suite, key string) { s.complete(key, 9) }},
	{"release", func(s suite, key string) { s.release(key, ownHold) }},
	{"release doubted", func(s suite, key string) { h := ownHold; h.Doubted = true; s.release(key, h) }},
	{"doubt", func(s suite, key string) { s.doubt(key, ownHold) }},
	{"look up", func(s suite, key string) { s.lookup(key) }},
}

func inFlight(token string, attempt int, doubted bool) dedupe.Record {
	return dedupe.Record{State: dedupe.InFlight, Token: token, Attempt: attempt, Doubted: doubted}
}

func inDoubt(token string, attempt int) dedupe.Record {
	return dedupe.Record{State: dedupe.InDoubt, Token: token, Attempt: attempt, Doubted: true}
}

func failed(attempt int, doubted bool) dedupe.Record {
	return dedupe.Record{State: dedupe.Failed, Attempt: attempt, Doubted: doubted}
}

// changes lists, for each start, the operations that change it and what they
// leave. What is not listed must leave the record as it was.
var changes = map[string]map[string]dedupe.Record{
	"absent": {
		"claim": inFlight("own", 1, false), "take over": inFlight("own", 1, false),
		"renew": inFlight("own", 3, false), "renew doubted": inFlight("own", 3, true), "doubt": inDoubt("own", 3), "release doubted": failed(3, true),
	},
	"own": {"release": failed(1, false), "release doubted": failed(1, false), "doubt": inDoubt("own", 1)},
	"own lapsed": {
		"release": failed(1, false), "release doubted": failed(1, false), "doubt": inDoubt("own", 1),
	},
	"other lapsed":        {"take over": inFlight("own", 2, true)},
	"own in doubt":        {"release": failed(1, true), "release doubted": failed(1, true)},
	"own in doubt lapsed": {"take over": inFlight("own", 2, true), "release": failed(1, true), "release doubted": failed(1, true)},
	"other in doubt lapsed": {
		"take over": inFlight("own", 2, true),
	},
	"failed":         {"claim": inFlight("own", 2, false), "take over": inFlight("own", 2, false)},
	"failed doubted": {"claim": inFlight("own", 3, true), "take over": inFlight("own", 3, true)},
}

// testTransitions runs every operation on every state.
func testTransitions(t *testing.T, h Harness) {
	for i, from := range starts {
		for j, op := range operations {
			t.Run(from.name+"/"+op.name, func(t *testing.T) {
				s := suite{t, h}
				key := dedupe.Key("transitions", fmt.Sprintf("%d-%d", i, j), "")
				from.make(s, key)
				before := plain(s.lookup(key))
				op.do(s, key)
				checkTransition(s, key, from.name, op.name, before)
			})
		}
	}
}

func checkTransition(s suite, key, from, op string, before dedupe.Record) {
	s.t.Helper()
	want, changed := changes[from][op]
	if !changed {
		want = before
	}
	got := plain(s.lookup(key))
	if op == "complete" {
		if got.State != dedupe.Completed || got.Attempt != 0 || got.Doubted || got.Token != "" {
			s.t.Errorf("got %+v, want a done event", got)
		}
		if from != "done" && got.Mark != 9 {
			s.t.Errorf("the mark is %d, want 9", got.Mark)
		}
		return
	}
	if got != want {
		s.t.Errorf("got %+v, want %+v", got, want)
	}
}
