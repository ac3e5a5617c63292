package tests

import (
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// overtaken is an event whose first owner was frozen for longer than its lease,
// so that another gateway took it over.
type overtaken struct {
	u             *harness.Upstream
	frozen, other *harness.Gateway
	event         *harness.Delivery
	early, late   *harness.Latch // of the frozen owner's request, and of the other's
	first, second *harness.Call
}

// overtake brings an event into that state: both owners' requests are in the
// upstream, and will be answered as said.
func overtake(t *testing.T, toFirst, toSecond int) *overtaken {
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	o := &overtaken{
		u:      u,
		frozen: harness.StartGateway(t, proxied(u, "lease 2s"), harness.WithRedis(r.Addr)),
		other:  harness.StartGateway(t, proxied(u, "lease 2s"), harness.WithRedis(r.Addr)),
		event:  harness.NewSender(t, "paymos").Event(harness.Unique("evt")),
		early:  harness.NewLatch(), late: harness.NewLatch(),
	}
	u.On(o.event.Event, harness.After(o.early, harness.Status(toFirst)), harness.After(o.late, harness.Status(toSecond)), harness.Status(200))
	o.first = o.frozen.Begin(t, harness.HTTP1, o.event)
	u.Await(t, o.event.Event, 1)
	o.frozen.Pause()
	harness.Eventually(t, "the other gateway takes the event over", func() bool {
		o.second = o.other.Begin(t, harness.HTTP1, o.event)
		harness.Eventually(t, "the attempt is answered or in the upstream", func() bool {
			return o.second.Answered() || len(u.Requests(o.event.Event)) > 1
		})
		if !o.second.Answered() {
			return true
		}
		if a := o.second.Answer(); a.String() != "503 in-flight" {
			t.Fatalf("an attempt within the lease got %q", a)
		}
		return false
	})
	return o
}

// thaw lets the first owner hear its answer.
func (o *overtaken) thaw(t *testing.T, want string) {
	t.Helper()
	o.early.Release()
	o.frozen.Continue()
	if a := o.first.Answer(); a.String() != want {
		t.Fatalf("the sender of the late owner got %q, want %q", a, want)
	}
}

func TestLateOwnerDoesNotFreeWhatAnotherHasTakenOver(t *testing.T) {
	t.Parallel()
	o := overtake(t, 500, 200)
	o.thaw(t, "500 first")
	o.frozen.Expect(t, o.event, "503 in-flight")
	o.late.Release()
	if a := o.second.Answer(); a.String() != "200 possible-repeat" {
		t.Fatalf("the second owner's sender got %q", a)
	}
	o.frozen.Expect(t, o.event, "200 duplicate")
	o.other.Expect(t, o.event, "200 duplicate")
	assertReached(t, o.u, o.event.Event, "first", "possible-repeat")
}

func TestLateSuccessIsNotUndoneByTheSecondOwnersFailure(t *testing.T) {
	t.Parallel()
	o := overtake(t, 200, 500)
	o.thaw(t, "200 first")
	o.frozen.Expect(t, o.event, "200 duplicate")
	o.late.Release()
	if a := o.second.Answer(); a.String() != "500 possible-repeat" {
		t.Fatalf("the second owner's sender got %q", a)
	}
	o.frozen.Expect(t, o.event, "200 duplicate")
	o.other.Expect(t, o.event, "200 duplicate")
	assertReached(t, o.u, o.event.Event, "first", "possible-repeat")
}

func TestLateFailureDoesNotUndoWhatIsDone(t *testing.T) {
	t.Parallel()
	o := overtake(t, 500, 200)
	o.late.Release()
	if a := o.second.Answer(); a.String() != "200 possible-repeat" {
		t.Fatalf("the second owner's sender got %q", a)
	}
	o.thaw(t, "500 first")
	o.frozen.Expect(t, o.event, "200 duplicate")
	o.other.Expect(t, o.event, "200 duplicate")
	assertReached(t, o.u, o.event.Event, "first", "possible-repeat")
}

func TestLossOfAClaimIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	o := overtake(t, 200, 200)
	o.frozen.Continue()
	o.frozen.AwaitLog(t, "another gateway took over", o.event.Event)
	if n := o.frozen.Metric("claims_lost_total"); n != 1 {
		t.Errorf("%v claims are counted as lost", n)
	}
	o.early.Release()
	o.late.Release()
	for _, c := range []*harness.Call{o.first, o.second} {
		if a := c.Answer(); a.Status != 200 {
			t.Errorf("a sender got %q", a)
		}
	}
}
