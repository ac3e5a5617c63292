// Command bench measures what the gateway costs, side by side with Caddy's own
// reverse_proxy and respond and with nginx, on one machine. It brings up all that
// it needs and writes Markdown to standard output. See README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		switch args[0] { // the roles that this program starts itself in
		case "load":
			return generateLoad()
		case "upstream":
			return serveUpstream(args[1])
		}
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.install {
		if err := installNginx(ctx); err != nil {
			return err
		}
	}
	r, err := newRig(ctx, o.settings)
	if r != nil {
		defer r.close()
	}
	if err != nil {
		return err
	}
	return o.measure(ctx, r, os.Stdout)
}

// options are the flags.
type options struct {
	settings
	variants, out, profiles           string
	memory, history, waiting, install bool
	faults                            bool
	soak                              time.Duration
	events, records, copies           int
	faultEvents                       int
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.IntVar(&o.rounds, "rounds", 8, "how often each variant runs")
	f.DurationVar(&o.duration, "duration", 2500*time.Millisecond, "how long it runs")
	f.DurationVar(&o.openDuration, "open-duration", 5*time.Second, "how long it runs at a fixed rate")
	f.DurationVar(&o.warmup, "warmup", 400*time.Millisecond, "what precedes each run and does not count")
	f.IntVar(&o.connections, "connections", 50, "kept connections of the load generator")
	f.Float64Var(&o.rate, "rate", 400, "requests per second at a fixed rate")
	body := f.String("body", "1KiB", "the size of a request's body")
	f.StringVar(&o.variants, "variants", "*", "names of variants, patterns too, with commas between them")
	f.StringVar(&o.out, "out", "", "write all figures to this JSON file")
	f.StringVar(&o.dir, "dir", "", "where Caddy's logs and the file store go (default the system's temporary directory)")
	f.StringVar(&o.program, "caddy", "", "use this Caddy, which has the module in it, instead of building one")
	f.StringVar(&o.older, "older", "", "compare the gateway with this older Caddy, which has the module in it too")
	f.BoolVar(&o.install, "install", false, "install nginx with Lua by apt-get")
	f.BoolVar(&o.memory, "memory", false, "measure Redis memory per finished event instead")
	f.IntVar(&o.events, "events", 100_000, "how many events -memory finishes")
	f.IntVar(&o.faultEvents, "fault-events", 2000, "how many events -faults delivers")
	f.BoolVar(&o.faults, "faults", false, "count what is lost and repeated in a run with faults instead")
	f.BoolVar(&o.history, "history", false, "measure latency before and after the store is full instead")
	f.IntVar(&o.records, "records", 1_000_000, "how many records -history puts into the store")
	f.BoolVar(&o.waiting, "waiting", false, "measure what copies cost that wait instead")
	f.IntVar(&o.copies, "copies", 1000, "how many copies -waiting has wait")
	f.DurationVar(&o.soak, "soak", 0, "measure memory over this time under load instead")
	f.StringVar(&o.profiles, "profiles", "", "write profiles of CPU time and allocations of each variant to this directory instead")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	size, err := humanize.ParseBytes(*body)
	if err != nil {
		return o, fmt.Errorf("-body: %w", err)
	}
	o.body = int(size)
	return o, nil
}

// document is the JSON file.
type document struct {
	Machine machine
	Time    time.Time
	Rows    []*row       `json:",omitempty"`
	Tables  []namedTable `json:",omitempty"`
}

// namedTable is a table of an extra measurement.
type namedTable struct {
	Title string
	Cells [][]string
}

// measure does what the flags ask for.
func (o options) measure(ctx context.Context, r *rig, w io.Writer) error {
	doc := document{Machine: r.machine(ctx), Time: time.Now()}
	doc.Machine.write(w, o.settings)
	var err error
	switch {
	case o.memory:
		doc.Tables, err = r.measureMemory(ctx, o.events)
	case o.history:
		doc.Tables, err = r.measureHistory(ctx, o.records)
	case o.waiting:
		doc.Tables, err = r.measureWaiting(ctx, o.copies)
	case o.faults:
		doc.Tables, err = r.measureFaults(ctx, o.faultEvents)
	case o.soak > 0:
		doc.Tables, err = r.measureSoak(ctx, o.soak)
	default:
		var chosen []variant
		if chosen, err = selected(o.variants); err != nil {
			return err
		}
		if o.older != "" {
			chosen = withOlder(chosen)
		}
		if o.profiles != "" {
			return r.profile(ctx, chosen, o.profiles)
		}
		doc.Rows, err = r.measure(ctx, chosen)
		writeTables(w, doc.Rows)
	}
	if err != nil {
		return err
	}
	for _, t := range doc.Tables {
		table(w, t.Title, t.Cells)
	}
	if n, first := r.loggedErrors(); n > 0 && !o.faults {
		fmt.Fprintf(w, "\n**Caddy logged %d errors**, the first: %s\n", n, first)
	}
	if o.out == "" {
		return nil
	}
	data, err := json.MarshalIndent(doc, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(data, '\n'), 0o644)
}
