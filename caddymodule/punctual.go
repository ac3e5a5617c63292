package caddymodule

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// A handler is punctual if it is known to end soon after the context of its request
// does. A chain of such handlers is called as any other; a chain with others gets
// a goroutine of its own, so that it can be left to itself when its time is over.
// FastCGI is one of these: its transport reads on whatever becomes of the context.

// punctualHandlers wait for nothing, or for nothing but the handlers behind them.
// What serves files is not among them (a file system may be anywhere), nor is
// copy_response, which may read the answer to another request.
var punctualHandlers = map[caddy.ModuleID]bool{
	"http.handlers.copy_response_headers": true,
	"http.handlers.encode":                true,
	"http.handlers.error":                 true,
	"http.handlers.headers":               true,
	"http.handlers.log_append":            true,
	"http.handlers.map":                   true,
	"http.handlers.request_body":          true,
	"http.handlers.rewrite":               true,
	"http.handlers.static_response":       true,
	"http.handlers.vars":                  true,
}

// punctualMatchers look at the request, and at nothing else.
var punctualMatchers = map[caddy.ModuleID]bool{
	"http.matchers.client_ip":     true,
	"http.matchers.header":        true,
	"http.matchers.header_regexp": true,
	"http.matchers.host":          true,
	"http.matchers.method":        true,
	"http.matchers.path":          true,
	"http.matchers.path_regexp":   true,
	"http.matchers.protocol":      true,
	"http.matchers.query":         true,
	"http.matchers.remote_ip":     true,
	"http.matchers.vars":          true,
	"http.matchers.vars_regexp":   true,
}

// tellPunctual tells the handlers of a configuration whether those behind them
// are punctual. Those that it does not find are not told.
func tellPunctual(ctx caddy.Context) {
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return
	}
	httpApp, ok := app.(*caddyhttp.App)
	if !ok {
		return
	}
	for _, server := range httpApp.Servers {
		routesPunctual(server.Routes, true)
		if server.Errors != nil {
			routesPunctual(server.Errors.Routes, true)
		}
	}
}

// routesPunctual reports whether routes are, with what is behind them.
func routesPunctual(routes caddyhttp.RouteList, behind bool) bool {
	all := behind
	each := make([]bool, len(routes)) // with what is behind it
	for i, route := range slices.Backward(routes) {
		matched := behind || route.Terminal
		for j := i + 1; j < len(routes) && !route.Terminal; j++ {
			exclusive := route.Group != "" && route.Group == routes[j].Group
			matched = matched && (exclusive || each[j])
		}
		for _, h := range slices.Backward(route.Handlers) {
			matched = punctual(h, matched)
		}
		each[i] = matched && matchersPunctual(route.MatcherSets)
		all = all && each[i]
	}
	return all
}

func matchersPunctual(sets caddyhttp.MatcherSets) bool {
	for _, m := range slices.Concat(sets...) {
		if not, ok := m.(*caddyhttp.MatchNot); ok {
			if !matchersPunctual(not.MatcherSets) {
				return false
			}
			continue
		}
		module, ok := m.(caddy.Module)
		if !ok || !punctualMatchers[module.CaddyModule().ID] {
			return false
		}
	}
	return true
}

// punctual reports whether h is, with what is behind it.
func punctual(h caddyhttp.MiddlewareHandler, behind bool) bool {
	switch h := h.(type) {
	case *Handler:
		h.punctual.Store(behind)
		return behind
	case *caddyhttp.Subroute:
		errors := behind
		if h.Errors != nil {
			errors = routesPunctual(h.Errors.Routes, behind)
		}
		return routesPunctual(h.Routes, behind) && errors
	case *intercept.Intercept:
		return answersPunctual(h.HandleResponse, behind)
	case *reverseproxy.Handler:
		return answersPunctual(h.HandleResponse, behind) && proxyPunctual(h)
	}
	module, ok := h.(caddy.Module)
	return behind && ok && punctualHandlers[module.CaddyModule().ID]
}

// proxyPunctual reports whether h is, by itself. Between its tries reverse_proxy
// waits for the end of the configuration, and not of the request.
func proxyPunctual(h *reverseproxy.Handler) bool {
	_, overHTTP := h.Transport.(*reverseproxy.HTTPTransport)
	lb := h.LoadBalancing
	triesOnce := lb == nil || lb.TryDuration == 0 && lb.Retries == 0 && len(lb.RetryMatch) == 0
	return overHTTP && triesOnce && h.DynamicUpstreams == nil && h.CB == nil
}

// answersPunctual is [routesPunctual] of what is done with an upstream's answers.
func answersPunctual(handlers []caddyhttp.ResponseHandler, behind bool) bool {
	all := behind
	for _, h := range handlers {
		all = routesPunctual(h.Routes, behind) && all
	}
	return all
}
