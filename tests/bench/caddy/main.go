// Command caddy is the program that the benchmarks measure: Caddy's standard
// modules, ours, and a handler that does the least that any such gateway must.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/caddymodule"
)

func main() { caddycmd.Main() }
