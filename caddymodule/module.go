// Package caddymodule is the Caddy side of webhook deduplication: the handler,
// the app that holds the store, their Caddyfile syntax, the stores as modules,
// metrics and commands. What a signature is and which delivery may pass is
// decided in packages verify and dedupe; this one only carries.
package caddymodule

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

func init() {
	caddy.RegisterModule(new(App))
	caddy.RegisterModule(Handler{})
	caddy.RegisterModule(FileStore{})
	caddy.RegisterModule(MemoryStore{})
	caddy.RegisterModule(RedisStore{})
	httpcaddyfile.RegisterGlobalOption("webhook_dedupe", parseGlobalOption)
	httpcaddyfile.RegisterHandlerDirective("webhook_dedupe", parseDirective)
	// Inside of request_body, outside of everything that answers or encodes.
	httpcaddyfile.RegisterDirectiveOrder("webhook_dedupe", httpcaddyfile.After, "basic_auth")
	caddy.OnExit(exit.finish)
}
