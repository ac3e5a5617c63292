package tests

import (
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// redisErrors are what a Redis that cannot serve says.
var redisErrors = map[string]string{
	"LOADING":     "LOADING Redis is loading the dataset in memory",
	"MISCONF":     "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.",
	"READONLY":    "READONLY You can't write against a read only replica.",
	"NOAUTH":      "NOAUTH Authentication required.",
	"NOPERM":      "NOPERM User gateway has no permissions to run the 'set' command",
	"OOM":         "OOM command not allowed when used memory > 'maxmemory'.",
	"CLUSTERDOWN": "CLUSTERDOWN The cluster is down",
	"MASTERDOWN":  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"NOREPLICAS":  "NOREPLICAS Not enough good replicas to write.",
	"TRYAGAIN":    "TRYAGAIN Multiple keys request during rehashing of slot",
	"ERR":         "ERR max number of clients reached",
}

// refusing makes a proxy answer with an error whatever concerns an event.
func refusing(p *harness.RedisProxy, event, reply string) {
	p.Decide(func(commands []string) harness.Fate {
		if strings.Contains(strings.Join(commands, "\n"), strings.ToLower(event)) {
			return harness.Refuse(reply)
		}
		return harness.Pass
	})
}

func TestErrorReplyToTheClaimIsNeverADuplicate(t *testing.T) {
	t.Parallel()
	for name, reply := range redisErrors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			r := harness.StartRedis(t)
			p := harness.StartRedisProxy(t, r.Addr)
			g := harness.StartGateway(t, proxied(u), harness.WithRedis(p.Addr))
			d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			refusing(p, d.Event, reply)
			if a := g.Expect(t, d, "503"); a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After while the store is away")
			}
			assertReached(t, u, d.Event)
			p.Decide(func([]string) harness.Fate { return harness.Pass })
			g.RetryUntil(t, d, "200 first|200 retry", "503", "503 in-flight")

			latch := harness.NewLatch()
			done := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
			u.On(done.Event, harness.After(latch, harness.Status(200)))
			call := g.Begin(t, harness.HTTP1, done)
			u.Await(t, done.Event, 1)
			refusing(p, done.Event, reply)
			latch.Release()
			if a := call.Answer(); a.String() != "200 first" {
				t.Fatalf("with the error in reply to the completion, the sender got %q", a)
			}
			g.Expect(t, done, "200 duplicate")
			p.Decide(func([]string) harness.Fate { return harness.Pass })
			harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, done.Event) })
			assertReached(t, u, done.Event, "first")
		})
	}
}

func TestRealRedisThatRefuses(t *testing.T) {
	t.Parallel()
	say := func(args ...any) func(*harness.Redis) { return func(r *harness.Redis) { r.Do(args...) } }
	closed := strings.Split(harness.ClosedPort(t), ":")
	for name, c := range map[string]struct{ spoil, repair func(*harness.Redis) }{
		"is out of memory":     {say("CONFIG", "SET", "maxmemory", "1"), say("CONFIG", "SET", "maxmemory", "0")},
		"became a replica":     {say("REPLICAOF", closed[0], closed[1]), say("REPLICAOF", "NO", "ONE")},
		"lacks replicas":       {say("CONFIG", "SET", "min-replicas-to-write", "1"), say("CONFIG", "SET", "min-replicas-to-write", "0")},
		"took rights away":     {say("ACL", "SETUSER", "default", "-set", "-eval", "-evalsha"), say("ACL", "SETUSER", "default", "+@all")},
		"cannot save":          {(*harness.Redis).FailToSave, (*harness.Redis).SaveAgain},
		"is loading":           {(*harness.Redis).LoadSlowly, (*harness.Redis).LoadQuickly},
		"wants a password":     {(*harness.Redis).WantPassword, (*harness.Redis).WantNoPassword},
		"has too many clients": {(*harness.Redis).TakeAllPlaces, (*harness.Redis).LeavePlaces},
		"pauses writes":        {say("CLIENT", "PAUSE", "60000", "WRITE"), say("CLIENT", "UNPAUSE")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			r := harness.StartRedis(t, durable...)
			g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
			s := harness.NewSender(t, "paymos")
			done, fresh, busy := s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt")), s.Event(harness.Unique("evt"))
			g.Expect(t, done, "200 first")
			latch := harness.NewLatch()
			u.On(busy.Event, harness.After(latch, harness.Status(200)))
			call := g.Begin(t, harness.HTTP1, busy)
			u.Await(t, busy.Event, 1)
			c.spoil(r)
			g.Expect(t, fresh, "503")
			if a := g.Send(t, done); a.String() != "503" && a.String() != "200 duplicate" {
				t.Fatalf("the sender of a finished event got %q", a)
			}
			latch.Release()
			if a := call.Answer(); a.String() != "200 first" {
				t.Errorf("the sender of an event that was accepted meanwhile got %q", a)
			}
			g.Expect(t, busy, "200 duplicate")
			assertReached(t, u, fresh.Event)
			c.repair(r)
			g.RetryUntil(t, fresh, "200 first|200 retry", "503", "503 in-flight")
			g.RetryUntil(t, done, "200 duplicate", "503")
			harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, busy.Event) })
			assertReached(t, u, busy.Event, "first")
		})
	}
}

func TestRedisThatWantsAPasswordNobodyGave(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t, "--requirepass", "surprise")
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "503")
	assertReached(t, u, d.Event)
	if e := g.AwaitLog(t, "delivery", "NOAUTH"); e.Text("reason") != "store" {
		t.Errorf("the log says %v", e)
	}
}

func TestForeignKeyIsNeitherFreeNorDone(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u), harness.WithRedis(r.Addr))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	key := r.Keys()[0]
	for _, spoil := range [][]any{{"SET", key, "somebody else's"}, {"SET", key, "12"}, {"DEL", key}} {
		r.Do(spoil...)
		if spoil[0] == "DEL" {
			r.Do("RPUSH", key, "a list")
		}
		g.Expect(t, d, "503")
	}
	assertReached(t, u, d.Event, "first")
}

func TestLostReplyDoesNotMakeTheOwnerAStranger(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]harness.Fate{
		"cut before": harness.CutBefore, "cut after": harness.CutAfter, "swallowed": harness.Swallow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			r := harness.StartRedis(t)
			p := harness.StartRedisProxy(t, r.Addr)
			g := harness.StartGateway(t, proxied(u), harness.WithRedis(p.Addr, "timeout 10s"))
			s := harness.NewSender(t, "paymos")

			claimed := s.Event(harness.Unique("evt"))
			happened := p.Once(claimed.Event, fate)
			g.Expect(t, claimed, "200 first")
			<-happened
			g.Expect(t, claimed, "200 duplicate")
			assertReached(t, u, claimed.Event, "first")

			completed := s.Event(harness.Unique("evt"))
			latch := harness.NewLatch()
			u.On(completed.Event, harness.After(latch, harness.Status(200)))
			call := g.Begin(t, harness.HTTP1, completed)
			u.Await(t, completed.Event, 1)
			happened = p.Once(completed.Event, fate)
			latch.Release()
			if a := call.Answer(); a.String() != "200 first" {
				t.Fatalf("the sender got %q", a)
			}
			<-happened
			g.Expect(t, completed, "200 duplicate")
			harness.Eventually(t, "the event is done in Redis", func() bool { return isDone(r, completed.Event) })
			assertReached(t, u, completed.Event, "first")
		})
	}
}
