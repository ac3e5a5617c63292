package redisstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// wordings are what servers, proxies and managed services answer instead of
// doing what they were told.
var wordings = []string{
	"LOADING Redis is loading the dataset in memory",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"CLUSTERDOWN Hash slot not served",
	"NOREPLICAS Not enough good replicas to write.",
	"NOAUTH Authentication required.",
	"NOPERM this user has no permissions to run the 'set' command",
	"WRONGPASS invalid username-password pair or user is disabled.",
	"READONLY You can't write against a read only replica.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"MOVED 1234 127.0.0.1:1",
	"ERR max number of clients reached",
	"ERR syntax error",
	"ERR DB index is out of range",
	"EXECABORT Transaction discarded because of previous errors.",
	"something that no Redis ever said",
}

func TestEveryErrorOfTheServerIsAnErrorAndNeverAState(t *testing.T) {
	for _, wording := range wordings {
		addr := startStub(t, func(args []string) string {
			if handshakes(args) {
				return ""
			}
			return "-" + wording
		})
		s := openAt(t, addr)
		for step, do := range operations(s, "a:1") {
			if step != "ping" {
				checkRefused(t, step, wording, do)
			}
		}
	}
}

func handshakes(args []string) bool {
	return args[0] == "hello" || args[0] == "client" || args[0] == "ping"
}

func checkRefused(t *testing.T, step, wording string, do func() (any, error)) {
	t.Helper()
	got, err := do()
	switch {
	case err == nil:
		t.Errorf("%s: %s returned %v", wording, step, got)
	case got != nil && !reflect.ValueOf(got).IsZero():
		t.Errorf("%s: %s returned %v beside an error", wording, step, got)
	case !strings.Contains(err.Error(), wording):
		t.Errorf("%s: %s does not tell why: %v", wording, step, err)
	}
	var cause redis.Error
	if err != nil && !errors.As(err, &cause) {
		t.Errorf("%s: %s does not wrap the cause: %v", wording, step, err)
	}
}

// One command of a step may be refused while the others pass.
func TestErrorOfAnyCommandIsTheErrorOfTheStep(t *testing.T) {
	answers := map[string]string{"set": "+OK", "get": "$1\r\n7", "pttl": ":60000"}
	for refused := range answers {
		for _, wording := range wordings {
			addr := startStub(t, func(args []string) string {
				switch {
				case args[0] == refused:
					return "-" + wording
				case args[0] == "evalsha":
					return "-NOPERM no scripts"
				}
				return answers[args[0]]
			})
			s := openAt(t, addr)
			for step, commands := range map[string]string{
				"claim": "set get pttl", "lookup": "get pttl", "bind": "set get", "complete": "set",
			} {
				if strings.Contains(commands, refused) {
					checkRefused(t, step, wording, operations(s, "a:1")[step])
				}
			}
		}
	}
}

func TestAnswersThatDoNotFitAreErrors(t *testing.T) {
	for _, answer := range []string{"+QUEUED", "$-1", "$0\r\n", "*0", "*1\r\n:1", "*2\r\n+I\r\n+x", "*2\r\n:1\r\n:1", "*3\r\n:1\r\n:1\r\n:1"} {
		addr := startStub(t, func(args []string) string {
			if handshakes(args) {
				return ""
			}
			return answer
		})
		s := openAt(t, addr)
		for step, do := range operations(s, "a:1") {
			if step == "ping" || step == "bind" || step == "lookup" && answer == "$-1" {
				continue
			}
			if got, err := do(); err == nil {
				t.Errorf("%q: %s returned %v", answer, step, got)
			}
		}
	}
}

func TestKeyThatKeepsVanishingIsAnError(t *testing.T) {
	addr := startStub(t, func(args []string) string {
		switch args[0] {
		case "set", "get":
			return "$-1"
		case "pttl":
			return ":-2"
		}
		return ""
	})
	s := openAt(t, addr)
	for _, step := range []string{"claim", "bind"} {
		if got, err := operations(s, "a:1")[step](); !errors.Is(err, errVanished) {
			t.Errorf("%s: %v, %v", step, got, err)
		}
	}
}

// An old record may expire between the commands of one step.
func TestKeyThatVanishedOnceIsAskedForAgain(t *testing.T) {
	for name, first := range map[string]map[string]string{
		"before GET":  {"set": "$-1", "get": "$-1", "pttl": ":-2"},
		"before PTTL": {"set": "$-1", "get": "$1\r\n7", "pttl": ":-2"},
	} {
		var sets atomic.Int32
		addr := startStub(t, func(args []string) string {
			if args[0] == "set" {
				sets.Add(1)
			}
			if sets.Load() > 1 {
				return map[string]string{"set": "+OK", "get": "$18\r\nI:own:1:0:500:1000", "pttl": ":900"}[args[0]]
			}
			return first[args[0]]
		})
		s := openAt(t, addr)
		if r, err := s.Lookup(context.Background(), "a:1"); err != nil || r != (dedupe.Record{}) {
			t.Errorf("%s: lookup: %+v, %v, want no record", name, r, err)
		}
		h := dedupe.Hold{Token: "own", Lease: 500 * time.Millisecond, TTL: time.Second}
		r, err := s.Claim(context.Background(), "a:1", h, true)
		if err != nil || !r.OwnedBy("own") || r.LeaseLeft != 400*time.Millisecond {
			t.Errorf("%s: claim: %+v, %v", name, r, err)
		}
	}
}

func TestFailuresKeepTheirCauseUnlessItHoldsASecret(t *testing.T) {
	c := &conn{options: resolved{password: "pw-1", sentinelPassword: "pw-2", timeout: time.Second}}
	cause := errors.New("plain")
	if err := c.failure("claim", cause); !errors.Is(err, cause) || err.Error() != "redis: claim: plain" {
		t.Errorf("got %v", err)
	}
	leak := fmt.Errorf("bad args: %s %s", "pw-1", "pw-2")
	err := c.failure("claim", leak)
	if errors.Is(err, leak) || strings.Contains(err.Error(), "pw-") {
		t.Errorf("the secret is still there: %v", err)
	}
	wrongType := errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
	if err := c.failure("claim", wrongType); !errors.Is(err, dedupe.ErrCorrupt) || !errors.Is(err, wrongType) {
		t.Errorf("a key of another type: %v", err)
	}
}
