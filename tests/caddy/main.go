// Command caddy is the program that the end-to-end tests run: Caddy's standard
// modules and ours, built from this module's own go.sum, without xcaddy.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/webhook-dedupe/caddy-webhook-dedupe/caddymodule"
)

func main() { caddycmd.Main() }
