// Package faults runs the gateway through everything that can break around it,
// all of it real: two Caddy processes that share a Redis server, or one on the
// file store, killed, ended, reloaded and frozen; the Redis server killed,
// emptied, frozen, full, read-only, loading, locked, crowded or unable to save;
// connections to it refused, and cut before and after the command; an upstream
// that fails in every way an upstream can, here and in PHP. There is a route for each policy
// and kind of sender, each with rules of its own. Senders follow a retry ladder
// scaled down in time, break off within bodies or dribble them; thieves send what
// they saw as if it were another event's; an operator decides at the end on what
// is held back. When all is over, what the senders, the gateways and the upstream
// have written down is put together, and every promise is checked event by event.
//
// A short run is part of every go test. The long one:
//
//	go test -race -tags nobadger,nomysql,nopgx ./tests/faults -run LongRun -events 2000 -faults 200 -seed 7 -timeout 30m -v
//
// A seed determines what the senders, the faults and the upstream do, and when;
// real processes still differ from run to run.
package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

var (
	eventsFlag = flag.Int("events", 0, "how many events the long run sends; 0 skips it")
	faultsFlag = flag.Int("faults", 200, "how many faults the long run injects")
	seedFlag   = flag.Uint64("seed", 0, "the seed of the fault runs; 0 takes a random one")
)

func TestMain(m *testing.M) {
	// The harness builds the program of the directory above.
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(harness.Main(m))
}

// theSeed is the seed of a run.
func theSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64N(1_000_000) + 1
}
