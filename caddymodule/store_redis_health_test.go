package caddymodule

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// watchedRedis is a store whose checks find what the test says.
type watchedRedis struct {
	*checkedRedis
	t     *testing.T
	logs  *zapobserver.ObservedLogs
	finds chan []redisstore.Finding
	paces chan time.Duration
}

func newWatchedRedis(t *testing.T) *watchedRedis {
	t.Helper()
	store, err := redisstore.New(redisstore.Options{Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	core, logs := zapobserver.New(zapcore.DebugLevel)
	ctx, stop := context.WithCancel(context.Background())
	w := &watchedRedis{newCheckedRedis(store, zap.New(core), stop), t, logs, make(chan []redisstore.Finding), make(chan time.Duration)}
	ended := make(chan struct{})
	go func() { defer close(ended); w.watch(ctx, w.check, w.pause) }()
	t.Cleanup(func() {
		w.Close()
		receive(t, ended, "the end of the checks")
	})
	return w
}

func (w *watchedRedis) check(ctx context.Context) ([]redisstore.Finding, error) {
	select {
	case found := <-w.finds:
		return found, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *watchedRedis) pause(ctx context.Context, d time.Duration) {
	select {
	case w.paces <- d:
	case <-ctx.Done():
	}
}

// finish lets a check end with these findings, and returns the new log lines
// and the pause after it.
func (w *watchedRedis) finish(found ...redisstore.Finding) (lines []string, pace time.Duration) {
	w.t.Helper()
	w.finds <- found
	pace = receive(w.t, w.paces, "the pause after the check")
	for _, e := range w.logs.TakeAll() {
		fields := e.ContextMap()
		lines = append(lines, e.Level.String()+" "+fields["reason"].(string)+" "+fields["node"].(string))
	}
	return lines, pace
}

// exported reports whether a metric is there at all.
func exported(t *testing.T, name string) bool {
	t.Helper()
	families, err := caddyRegistry(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "caddy_webhook_dedupe_"+name {
			return true
		}
	}
	return false
}

func TestFindingIsLoggedWhenItAppearsAndWhenItGoes(t *testing.T) {
	w := newWatchedRedis(t)
	policy := redisstore.Finding{Reason: redisstore.EvictionPolicy, Node: "a", Detail: "x"}
	memory := redisstore.Finding{Reason: redisstore.MemoryNearlyFull, Node: "a", Detail: "91 of 100"}
	more := redisstore.Finding{Reason: redisstore.MemoryNearlyFull, Node: "a", Detail: "92 of 100"}
	elsewhere := redisstore.Finding{Reason: redisstore.EvictionPolicy, Node: "b", Detail: "x"}
	for i, step := range []struct {
		found []redisstore.Finding
		want  string
	}{
		{nil, ""},
		{[]redisstore.Finding{policy}, "error eviction_policy a"},
		{[]redisstore.Finding{policy, memory}, "warn memory_nearly_full a"},
		{[]redisstore.Finding{policy, more}, ""},
		{[]redisstore.Finding{elsewhere, more, policy}, "error eviction_policy b"},
		{[]redisstore.Finding{elsewhere, more}, "info eviction_policy a"},
		{[]redisstore.Finding{elsewhere}, "info memory_nearly_full a"},
		{[]redisstore.Finding{elsewhere, more}, "warn memory_nearly_full a"},
	} {
		if lines, _ := w.finish(step.found...); strings.Join(lines, ", ") != step.want {
			t.Errorf("check %d: logged %q, want %q", i, lines, step.want)
		}
	}
}

func TestFindingsAreGaugesWhileARedisStoreIsOpen(t *testing.T) {
	w := newWatchedRedis(t)
	if exported(t, "store_up") || exported(t, "store_findings") {
		t.Error("there are gauges before a check has ended")
	}
	_, pace := w.finish(redisstore.Finding{Reason: redisstore.NoPersistence})
	if count(t, "store_up") != 1 || count(t, "store_findings", "reason", "no_persistence") != 1 || count(t, "store_findings") != 1 {
		t.Error("the gauges do not say that it is up and persists nothing")
	}
	if pace != checkPace {
		t.Errorf("the next check is after %v", pace)
	}
	_, pace = w.finish(redisstore.Finding{Reason: redisstore.Unreachable})
	if count(t, "store_up") != 0 || count(t, "store_findings", "reason", "unreachable") != 1 || count(t, "store_findings") != 1 {
		t.Error("the gauges do not say that it is away")
	}
	if pace != checkPaceDown {
		t.Errorf("a store that is away is checked after %v", pace)
	}
	w.finish()
	if count(t, "store_up") != 1 || count(t, "store_findings") != 0 || !exported(t, "store_findings") {
		t.Error("the gauges do not say that all is well")
	}
	w.Close()
	if exported(t, "store_up") || exported(t, "store_findings") {
		t.Error("there are gauges after the store was closed")
	}
}

func TestGaugesCoverBothStoresOfAReload(t *testing.T) {
	old, fresh := newWatchedRedis(t), newWatchedRedis(t)
	old.finish(redisstore.Finding{Reason: redisstore.Unreachable})
	fresh.finish()
	if count(t, "store_up") != 0 {
		t.Error("the old store is forgotten, which still has to be told of events")
	}
	old.Close()
	if count(t, "store_up") != 1 || count(t, "store_findings") != 0 {
		t.Error("the old store is not forgotten")
	}
}

// silentRedis accepts connections and says nothing.
func silentRedis(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestOpeningARedisStoreWaitsForNoCheck(t *testing.T) {
	s := &RedisStore{Addresses: []string{silentRedis(t)}, OperationTimeout: caddy.Duration(time.Hour)}
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	store, err := s.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(store); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

func TestRedisThatIsAwayIsLoggedAndRefusesNoStart(t *testing.T) {
	logs := newLogBook()
	ctx, err := provision(t, "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore redis {\naddress 127.0.0.1:1\npassword of-the-test\n}\n}\n}\n"+
		"http://x {\nwebhook_dedupe stripe {\nsource x\nsecret x\n}\n}", logs)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App(appName)
	if err != nil {
		t.Fatal(err)
	}
	a := app.(*App)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	const message = "the Redis store is not as it should be"
	for end := time.Now().Add(patience); len(logs.lines(t, message)) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if line := logs.last(t, message); line["level"] != "error" || line["reason"] != "unreachable" || strings.Contains(logs.String(), "of-the-test") {
		t.Errorf("the log says %v", line)
	}
	if err := a.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if exported(t, "store_up") {
		t.Error("the store is watched still")
	}
}

func TestFindingsGoToTheLatestConfigurationsLog(t *testing.T) {
	w := newWatchedRedis(t)
	core, logs := zapobserver.New(zapcore.DebugLevel)
	reloaded := &RedisStore{options: redisstore.Options{Addresses: []string{"127.0.0.1:1"}}, logger: zap.New(core)}
	if err := reloaded.Apply(w.checkedRedis); err != nil {
		t.Fatal(err)
	}
	if old, _ := w.finish(redisstore.Finding{Reason: redisstore.Version}); len(old) != 0 || logs.Len() != 1 {
		t.Errorf("the old log has %v, the new one %d lines", old, logs.Len())
	}
}
