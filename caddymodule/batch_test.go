package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

const batchRoute = `route {
	webhook_dedupe {
		source $SOURCE
		secret $SECRET
		signature {
			header X-Sig
		}
		event_id json events[*].id
		on_reused_id duplicate
		wait 0
	}
	upstream
}`

// batchOf is the body of a batch.
func batchOf(ids ...string) string {
	var events []string
	for _, id := range ids {
		events = append(events, fmt.Sprintf(`{"id":%q}`, id))
	}
	return `{"events": [` + strings.Join(events, ", ") + `] }`
}

// sendBatch delivers a body for batchRoute.
func (g *gateway) sendBatch(body string) *http.Response {
	g.t.Helper()
	return g.do(signedBatch(body))
}

func signedBatch(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://gateway.test/hook", strings.NewReader(body))
	r.Header.Set("X-Sig", hmacHex(body))
	return r
}

// told is what an upstream was told.
type told struct{ result, done, body string }

// telling is an upstream that answers with these statuses, the last of them from
// then on, and what it was told.
func telling(statuses ...int) (func(http.ResponseWriter, *http.Request) error, *[]told) {
	seen := new([]told)
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		*seen = append(*seen, told{r.Header.Get(resultHeader), r.Header.Get(doneHeader), string(body)})
		w.WriteHeader(statuses[0])
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		return err
	}, seen
}

func (g *gateway) states(ids ...string) (states []dedupe.State) {
	for _, id := range ids {
		states = append(states, g.store.state(g.source+":"+id))
	}
	return states
}

func TestABatchIsDeliveredOnceAsAWhole(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, batchRoute, up)
	body := batchOf("b", "a", "c")
	expect(t, g.sendBatch(body), 200, "first")
	expect(t, g.sendBatch(body), 200, "duplicate")
	expect(t, g.sendBatch(batchOf("c", "a")), 200, "duplicate")
	if want := []told{{"first", "", body}}; !slices.Equal(*seen, want) {
		t.Errorf("the upstream was told %v", *seen)
	}
	if s := g.states("a", "b", "c"); !slices.Equal(s, slices.Repeat([]dedupe.State{dedupe.Completed}, 3)) {
		t.Errorf("the records are %v", s)
	}
	if n := count(t, "deliveries_total", "source", g.source); n != 3 {
		t.Errorf("%v deliveries", n)
	}
	if first, dup := count(t, "batch_events_total", "source", g.source, "result", "first"), count(t, "batch_events_total", "source", g.source, "result", "duplicate"); first != 3 || dup != 5 {
		t.Errorf("%v first and %v duplicate events", first, dup)
	}
}

func TestABatchWithSomethingNewGoesThroughUnchangedAndNamesWhatIsDone(t *testing.T) {
	up, seen := telling(200, 500, 200)
	g := newGateway(t, batchRoute, up)
	g.sendBatch(batchOf("b", "a b,c/é*"))
	body := batchOf("new", "a b,c/é*", "b", "newer")
	expect(t, g.sendBatch(body), 500, "possible-repeat")
	if s := g.states("b", "new", "newer"); !slices.Equal(s, []dedupe.State{dedupe.Completed, dedupe.Failed, dedupe.Failed}) {
		t.Errorf("the records are %v", s)
	}
	expect(t, g.sendBatch(body), 200, "possible-repeat")
	expect(t, g.sendBatch(body), 200, "duplicate")
	if len(*seen) != 3 || (*seen)[1] != (*seen)[2] || (*seen)[1].body != body {
		t.Fatalf("the upstream was told %v", *seen)
	}
	var done []string
	for item := range strings.SplitSeq((*seen)[1].done, ",") {
		id, err := url.PathUnescape(item)
		if err != nil {
			t.Error(err)
		}
		done = append(done, id)
	}
	slices.Sort(done)
	if !slices.Equal(done, []string{"a b,c/é*", "b"}) {
		t.Errorf("done are %q, from %s", done, (*seen)[1].done)
	}
	line := g.logs.lines(t, "delivery")[1]
	if line["events"] != 4.0 || line["events_done"] != 2.0 || line["event_id"] != "new, a b,c/é*, b and 1 more" || line["attempt"] != 1.0 {
		t.Errorf("the log says %v", line)
	}
}

func TestOnlyTheGatewaySaysWhatIsDone(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, batchRoute, up)
	r := signedBatch(batchOf("a"))
	r.Header.Set(doneHeader, "a")
	g.do(r)
	if len(*seen) != 1 || (*seen)[0].done != "" {
		t.Errorf("the upstream was told %v", *seen)
	}
}

func TestTheListOfWhatIsDoneIsBounded(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, batchRoute, up)
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("evt_%06d", i))
	}
	g.sendBatch(batchOf(ids...))
	g.sendBatch(batchOf(append(ids, "new")...))
	g.sendBatch(batchOf(strings.Repeat("x", 5000)))
	g.sendBatch(batchOf(strings.Repeat("x", 5000), "newer"))
	list := (*seen)[1].done
	if items := strings.Split(list, ","); len(list) > maxDoneHeader || len(list) < maxDoneHeader-20 || items[0] != "evt_000000" || items[len(items)-1] != "*" {
		t.Errorf("%d bytes: %s", len(list), list)
	}
	if got := (*seen)[3].done; got != "*" {
		t.Errorf("an id that does not fit: %s", got)
	}
}

func TestABatchWithAnEventInFlightComesAgain(t *testing.T) {
	up := newBlocking()
	g := newGateway(t, batchRoute, up.serve)
	first := g.start(signedBatch(batchOf("b")))
	receive(t, up.called, "the call")
	refused := g.sendBatch(batchOf("a", "b", "c"))
	expect(t, refused, http.StatusServiceUnavailable, "in-flight")
	if refused.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if s := g.states("a", "b", "c"); !slices.Equal(s, []dedupe.State{dedupe.Failed, dedupe.InFlight, dedupe.Absent}) && !slices.Equal(s, []dedupe.State{dedupe.Failed, dedupe.InFlight, dedupe.Failed}) {
		t.Errorf("the records are %v", s)
	}
	close(up.goOn)
	expect(t, receive(t, first, "the answer"), 200, "first")
	expect(t, g.sendBatch(batchOf("a", "c")), 200, "retry")
	expect(t, g.sendBatch(batchOf("a", "b", "c")), 200, "duplicate")
}

func TestABatchInDoubtIsAPossibleRepeatAfterItsLease(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, strings.Replace(batchRoute, "wait 0", "on_unknown hold", 1), up)
	g.store.leaveInDoubt(t, g.source+":b")
	held := g.sendBatch(batchOf("a", "b"))
	expect(t, held, http.StatusServiceUnavailable, "held")
	if held.Header.Get("Retry-After") != "30" {
		t.Errorf("Retry-After %q", held.Header.Get("Retry-After"))
	}
	h := newGatewayOn(t, g.store, batchRoute, up)
	expect(t, h.sendBatch(batchOf("a", "b")), 200, "possible-repeat")
	if len(*seen) != 1 || (*seen)[0].done != "" {
		t.Errorf("the upstream was told %v", *seen)
	}
}

func TestABatchWithoutAStoreIsRefused(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, batchRoute, counting(&calls))
	g.store.away.Store(true)
	expect(t, g.sendBatch(batchOf("a", "b")), http.StatusServiceUnavailable, "")
	g.store.heal()
	expect(t, g.sendBatch(batchOf("x", "y")), 200, "first")
	if calls.Load() != 1 || g.logs.lines(t, "delivery")[0]["reason"] != "store" {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestABatchWithAnOddEventIsRefusedAsAWhole(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, batchRoute, counting(&calls))
	for body, reason := range map[string]string{
		`{"events":[{"id":"a"},{}]}`: "missing_id", `{"events":[]}`: "missing_id", `{"events":[{"id":"a","id":"b"}]}`: "ambiguous_id", `[{"id":"a"}]`: "bad_id",
	} {
		expect(t, g.sendBatch(body), http.StatusBadRequest, "")
		if line := g.logs.last(t, "delivery"); line["reason"] != reason || line["event_id"] != nil {
			t.Errorf("%s: the log says %v", body, line)
		}
	}
	if calls.Load() != 0 || g.store.calls.Load() != 0 {
		t.Error("something was touched")
	}
}

// A batch may be composed anew when it is sent again: an event is told by its
// own bytes from another one with its id, and not by the body around it.
func TestAnElementIsTheBodyOfItsEvent(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, strings.Replace(batchRoute, "on_reused_id duplicate", "on_reused_id forward", 1), up)
	expect(t, g.sendBatch(`{"events":[{"id":"a","n":1},{"id":"b"}]}`), 200, "first")
	expect(t, g.sendBatch(`{"events":[{"id":"a","n":1}]}`), 200, "duplicate")
	expect(t, g.sendBatch(`{"events":[{"id":"a","n":2},{"id":"b"}]}`), 200, "possible-repeat")
	if len(*seen) != 2 || (*seen)[1].done != "b" {
		t.Errorf("the upstream was told %v", *seen)
	}
	if n := count(t, "reused_ids_total", "source", g.source); n != 1 {
		t.Errorf("%v are counted as reused", n)
	}
	if h := provisioned(t, custom("signature {\nheader X-Sig\n}\nevent_id json $[*].id")); !h.forwardReused || h.replayGuard {
		t.Error("the defaults are not those of a custom scheme")
	}

	g = newGateway(t, batchRoute, up)
	expect(t, g.sendBatch(`{"events":[{"id":"a","n":1}]}`), 200, "first")
	expect(t, g.sendBatch(`{"events":[{"id":"a","n":2}]}`), 200, "duplicate")
	if line := g.logs.last(t, "delivery"); line["reused_id"] != true {
		t.Errorf("the log says %v", line)
	}
}

func TestTheReplayGuardBindsAllIDsOfABatch(t *testing.T) {
	up, _ := telling(200)
	g := newGateway(t, `route {
		webhook_dedupe {
			source $SOURCE
			secret $SECRET
			signature {
				header X-Sig
				payload {timestamp}.{body}
				timestamp header X-Time
			}
			event_id header X-Account
			event_id json $[*].id
		}
		upstream
	}`, up)
	now := fmt.Sprint(time.Now().Unix())
	send := func(account string) *http.Response {
		body := `[{"id":"a"},{"id":"b"}]`
		r := signedBatch(body)
		r.Header.Set("X-Sig", hmacHex(now+"."+body))
		r.Header.Set("X-Time", now)
		r.Header.Set("X-Account", account)
		return g.do(r)
	}
	expect(t, send("acc1"), 200, "first")
	expect(t, send("acc1"), 200, "duplicate")
	expect(t, send("acc2"), http.StatusServiceUnavailable, "")
}

func TestADryRunOfBatchesReportsAndRecords(t *testing.T) {
	up, seen := telling(200)
	g := newGateway(t, strings.Replace(batchRoute, "wait 0", "dry_run", 1), up)
	expect(t, g.sendBatch(batchOf("a", "b")), 200, "first")
	expect(t, g.sendBatch(batchOf("b")), 200, "duplicate")
	expect(t, g.sendBatch(batchOf("c", "b")), 200, "possible-repeat")
	expect(t, g.sendBatch(`{"events":[]}`), 200, "")
	if len(*seen) != 4 || (*seen)[2].done != "b" {
		t.Errorf("the upstream was told %v", *seen)
	}
}

func TestTheOutcomeOfABatchWaitsForTheStore(t *testing.T) {
	var calls atomic.Int64
	g := newGateway(t, batchRoute, counting(&calls))
	g.store.noComplete.Store(true)
	expect(t, g.sendBatch(batchOf("a", "b")), 200, "first")
	expect(t, g.sendBatch(batchOf("a", "b")), 200, "duplicate")
	if s := g.states("a", "b"); !slices.Equal(s, []dedupe.State{dedupe.InFlight, dedupe.InFlight}) {
		t.Errorf("the records are %v", s)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}
