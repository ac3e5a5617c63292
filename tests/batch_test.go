package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// inBatches is a route for bodies that are arrays of events.
func inBatches(u *harness.Upstream, lines ...string) string {
	return route("/pay", "github", append(lines, "event_id json $[*].id", "on_reused_id duplicate")...) + "reverse_proxy " + u.Addr
}

// batches makes deliveries of several events, under a name for the test.
type batches struct {
	sender *harness.Sender
	// prefix begins the ids, and keeps the batches of one test apart.
	prefix string
}

func newBatches(t *testing.T) batches {
	t.Helper()
	s := harness.CustomSender(t, verify.Config{Sender: "github", EventID: []verify.IDSource{{Kind: verify.FromJSON, Name: "$[*].id"}}})
	return batches{s, harness.Unique("evt")}
}

func (b batches) of(name string, ids ...string) *harness.Delivery {
	var events []string
	for _, id := range ids {
		events = append(events, fmt.Sprintf(`{"n": 1.0,  "id":%q}`, b.prefix+id))
	}
	return signedAs(b.sender, b.prefix+name, "["+strings.Join(events, ",")+"]\n")
}

// done is what the upstream was told of the batch's events, without the prefix.
func (b batches) done(t *testing.T, u *harness.Upstream, d *harness.Delivery) string {
	t.Helper()
	seen := u.Requests(d.Event)
	if len(seen) == 0 {
		t.Fatalf("%s never came", d.Event)
	}
	last := seen[len(seen)-1]
	if string(last.Body) != string(d.Body) {
		t.Fatalf("the body of %s is %s", d.Event, last.Body)
	}
	return strings.ReplaceAll(last.Header.Get("Webhook-Dedupe-Done"), b.prefix, "")
}

func TestBatchIsDeliveredOnceAndWithSomethingNewAgain(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, inBatches(u), store(t))
			b := newBatches(t)
			whole, part, more := b.of("whole", "2", "1", "3", "1"), b.of("part", "3", "2"), b.of("more", "3", "4", "1")
			g.Expect(t, whole, "200 first")
			g.Expect(t, whole, "200 duplicate")
			g.Expect(t, part, "200 duplicate")
			g.Expect(t, more, "200 possible-repeat")
			g.Expect(t, more, "200 duplicate")
			g.Expect(t, b.of("last", "4"), "200 duplicate")
			assertReached(t, u, whole.Event, "first")
			assertReached(t, u, part.Event)
			assertReached(t, u, more.Event, "possible-repeat")
			if done := b.done(t, u, whole); done != "" {
				t.Errorf("done before the first: %s", done)
			}
			if done := b.done(t, u, more); done != "1,3" {
				t.Errorf("done before: %s", done)
			}
		})
	}
}

// TestBatchWithAnEventInFlightElsewhereBlocksNothing, here or in another gateway.
func TestBatchWithAnEventInFlightElsewhereBlocksNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	gateways := []*harness.Gateway{
		harness.StartGateway(t, inBatches(u, "wait 1m"), harness.WithRedis(r.Addr)),
		harness.StartGateway(t, inBatches(u, "wait 1m"), harness.WithRedis(r.Addr)),
	}
	for name, g := range map[string]*harness.Gateway{"here": gateways[0], "elsewhere": gateways[1]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBatches(t)
			slow, batch := b.of("slow", "2", "9"), b.of("batch", "3", "1", "2")
			latch := harness.NewLatch()
			u.On(slow.Event, harness.After(latch, harness.Status(200)))
			first := gateways[0].Begin(t, harness.HTTP1, slow)
			u.Await(t, slow.Event, 1)
			// It does not wait for the other one, whatever the route's wait.
			if a := g.Expect(t, batch, "503 in-flight"); a.Header.Get("Retry-After") == "" {
				t.Error("it is not told when to come again")
			}
			g.Expect(t, b.of("others", "1", "3"), "200 retry")
			latch.Release()
			if a := first.Answer(); a.String() != "200 first" {
				t.Fatalf("the first delivery got %q", a)
			}
			g.Expect(t, batch, "200 duplicate")
			assertReached(t, u, batch.Event)
		})
	}
}

func TestRefusedBatchIsReleasedAsAWhole(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, inBatches(u))
	b := newBatches(t)
	g.Expect(t, b.of("before", "2"), "200 first")
	d := b.of("batch", "1", "2", "3")
	u.On(d.Event, harness.Status(500), harness.Redirect(302, "/elsewhere"), harness.Status(200))
	g.Expect(t, d, "500 possible-repeat")
	g.Expect(t, b.of("one", "1"), "200 retry")
	g.Expect(t, b.of("done", "2"), "200 duplicate")
	g.Expect(t, d, "502 possible-repeat")
	g.Expect(t, d, "200 possible-repeat")
	if done := b.done(t, u, d); done != "1,2" {
		t.Errorf("done before: %s", done)
	}
	g.Expect(t, b.of("all", "1", "2", "3"), "200 duplicate")
}

func TestCrashInTheMiddleOfABatchLeavesItInDoubt(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"file", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, inBatches(u, "lease 2s"), stores[store](t))
			b := newBatches(t)
			g.Expect(t, b.of("before", "2"), "200 first")
			d := b.of("batch", "1", "2", "3")
			u.On(d.Event, harness.Hang(), harness.Status(200))
			g.Begin(t, harness.HTTP1, d)
			u.Await(t, d.Event, 1)
			g.Kill()
			g.Start("")
			part := b.of("part", "3")
			g.RetryUntil(t, part, "200 possible-repeat", "503 in-flight")
			g.RetryUntil(t, d, "200 possible-repeat", "503 in-flight")
			if done := b.done(t, u, d); done != "2,3" {
				t.Errorf("done before: %s", done)
			}
			g.Expect(t, d, "200 duplicate")
		})
	}
}

func TestLeaseOfEveryEventOfABatchIsRenewed(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	busy := harness.StartGateway(t, inBatches(u, "lease 1s"), harness.WithRedis(r.Addr))
	other := harness.StartGateway(t, inBatches(u, "lease 1s"), harness.WithRedis(r.Addr))
	b := newBatches(t)
	d := b.of("batch", "1", "2")
	latch := harness.NewLatch()
	u.On(d.Event, harness.After(latch, harness.Status(200)))
	first := busy.Begin(t, harness.HTTP1, d)
	u.Await(t, d.Event, 1)
	// Events that nobody renews are free after their lease: these two are tried
	// for as long as it takes one of those.
	dead := b.of("dead", "3")
	u.On(dead.Event, harness.Hang(), harness.Status(200))
	gone := harness.StartGateway(t, inBatches(u, "lease 3s"), harness.WithRedis(r.Addr))
	gone.Begin(t, harness.HTTP1, dead)
	u.Await(t, dead.Event, 1)
	gone.Kill()
	other.RetryUntil(t, dead, "200 possible-repeat", "503 in-flight")
	other.Expect(t, b.of("one", "1"), "503 in-flight")
	other.Expect(t, b.of("two", "2"), "503 in-flight")
	latch.Release()
	if a := first.Answer(); a.String() != "200 first" {
		t.Fatalf("the first delivery got %q", a)
	}
	other.Expect(t, d, "200 duplicate")
}

func TestLargestBatchIsTakenAndNoLargerOne(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			g := harness.StartGateway(t, inBatches(u), store(t))
			b := newBatches(t)
			ids := make([]string, verify.MaxBatch+1)
			for i := range ids {
				ids[i] = fmt.Sprint("_", i)
			}
			g.Expect(t, b.of("too many", ids...), "400")
			d := b.of("most", ids[1:]...)
			g.Expect(t, d, "200 first")
			g.Expect(t, d, "200 duplicate")
			assertReached(t, u, d.Event, "first")
		})
	}
}

func TestWithoutAnEventIDTheStoreMayBeAway(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "event_id none"), harness.WithRedis(harness.ClosedPort(t)))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "200 verified")
	g.Expect(t, d, "200 verified")
	if a := g.Send(t, d.With("X-Webhook-Signature", "t=1,v1="+strings.Repeat("0", 64))); a.String() != "401" {
		t.Errorf("a forged delivery got %q", a)
	}
	assertReached(t, u, d.Event, "verified", "verified")
}
