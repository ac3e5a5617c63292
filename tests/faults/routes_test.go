package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// route is a part of the gateway's site. Each event comes to one of them, and is
// judged by its rules.
type route struct {
	// name is the path's, the source's, and that of the route in what a run tells.
	name   string
	sender string
	lines  []string
	// share is how many of the events come to it.
	share int
	// holds: what is in doubt stays back until an operator decides.
	holds bool
	// forwards: deliveries pass unasked while the store is away.
	forwards bool
	// guarded: the event id is not signed, and thieves try to use that.
	guarded bool
	// php: the upstream is a script in php-fpm.
	php bool
}

// routes are those of every run: all policies, senders whose id is signed and
// one whose id is not, and two kinds of upstream.
func routes() []*route {
	return []*route{
		{name: "plain", sender: "paymos", share: 4},
		{name: "hold", sender: "standard-webhooks", lines: []string{"on_unknown hold"}, share: 3, holds: true},
		{name: "forward", sender: "stripe", lines: []string{"on_store_error forward"}, share: 3, forwards: true},
		{name: "guarded", sender: "stableops", share: 3, guarded: true},
		{name: "fpm", sender: "svix", share: 3, php: true},
	}
}

func (r *route) path() string { return "/" + r.name }

// site is the gateway's configuration. Its variants differ in what a reload may
// change in the middle of everything: how long a lease is, an event is known and
// a copy waits. No lease is shorter than that of the first.
func (w *world) site(variant int) string {
	var b strings.Builder
	for _, r := range w.routes {
		lines := append([]string{
			"source " + r.name, "secret " + harness.Secret,
			fmt.Sprint("lease ", lease+time.Duration(variant%3)*lease/4),
			fmt.Sprint("ttl ", 10+variant%5, "d"),
			fmt.Sprint("upstream_timeout ", upstreamTimeout),
			fmt.Sprint("wait ", copiesWait*time.Duration(1-variant%2)),
			fmt.Sprint("max_in_flight ", 100_000+variant),
			fmt.Sprint("max_response ", maxResponse, "B"),
			"log_field try header " + tryHeader,
		}, r.lines...)
		if r.holds && w.released {
			lines = append(lines[:len(lines)-1], "on_unknown redeliver")
		}
		fmt.Fprintf(&b, "webhook_dedupe %s %s {\n\t%s\n}\n", r.path(), r.sender, strings.Join(lines, "\n\t"))
	}
	fmt.Fprintf(&b, "handle /fpm {\n%s {\nread_timeout %v\n}\n}\n", w.php.Site, upstreamTimeout+lease/2)
	fmt.Fprintf(&b, "handle {\nreverse_proxy %s\n}\n", w.upstream.addr)
	return b.String()
}
