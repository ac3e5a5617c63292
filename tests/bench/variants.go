package main

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// variant is a row of the table: a server, and what is sent to it.
type variant struct {
	Name   string
	Title  string
	server string
	sender string
	// duplicate: all events are done already.
	duplicate bool
	// word is the Webhook-Dedupe header of the answers.
	word string
	// Open: requests come at a fixed rate, however long answers take.
	Open bool
	// Base is the variant that this one is compared with.
	Base string
	// Proxy is the plain proxy under the same load.
	Proxy string
}

// The baselines.
const (
	plainProxy   = "proxy"
	plainRespond = "respond"
	open         = "-open"
)

// variants are all rows, in the order of the table.
func variants() []variant {
	all := []variant{
		{Name: plainProxy, Title: "Caddy `reverse_proxy` alone", server: "proxy"},
		{Name: "proxy-buffered", Title: "Caddy `reverse_proxy` with `request_buffers`", server: "proxy-buffered"},
		{Name: "floor-first", Title: "Caddy `reverse_proxy` behind reading the body and its HMAC", server: "floor"},
		{Name: "floor-redis-first", Title: "the same, and a claim and a completion in Redis", server: "floor-redis"},
		{Name: "redis-first", Title: "gateway, first-seen, Redis", server: "redis"},
		{Name: "redis-first-log", Title: "gateway, first-seen, Redis, delivery log on", server: "redis-log"},
		{Name: "redis-first-body-id", Title: "gateway, first-seen, Redis, id in the JSON body (paymos)", server: "redis", sender: "paymos"},
		{Name: "redis-first-guard", Title: "gateway, first-seen, Redis, replay guard on (stableops)", server: "redis", sender: "stableops"},
		{Name: "redis-first-buffered", Title: "gateway, first-seen, Redis, proxy with `request_buffers`", server: "redis-buffered"},
		{Name: "file-first", Title: "gateway, first-seen, file store", server: "file"},
		{Name: "file-first-log", Title: "gateway, first-seen, file store, delivery log on", server: "file-log"},
		{Name: "always-first", Title: "gateway, first-seen, file store, sync always", server: "always"},
		{Name: "memory-first", Title: "gateway, first-seen, memory", server: "memory"},
		{Name: "nginx-proxy", Title: "nginx `proxy_pass` alone", server: "nginx"},
		{Name: "nginx-lua-first", Title: "nginx + Lua, naive, first-seen, Redis", server: "nginx-lua"},
		{Name: plainRespond, Title: "Caddy `respond 200`", server: "respond"},
		{Name: "floor-duplicate", Title: "Caddy `respond 200` behind reading the body and its HMAC", server: "floor-respond"},
		{Name: "floor-redis-duplicate", Title: "an empty answer after reading the body, its HMAC, and a claim in Redis", server: "floor-redis", duplicate: true},
		{Name: "redis-duplicate", Title: "gateway, duplicate, Redis", server: "redis", duplicate: true},
		{Name: "redis-duplicate-log", Title: "gateway, duplicate, Redis, delivery log on", server: "redis-log", duplicate: true},
		{Name: "file-duplicate", Title: "gateway, duplicate, file store", server: "file", duplicate: true},
		{Name: "memory-duplicate", Title: "gateway, duplicate, memory", server: "memory", duplicate: true},
		{Name: "nginx-lua-duplicate", Title: "nginx + Lua, naive, duplicate, Redis", server: "nginx-lua", duplicate: true},
	}
	for i := range all {
		all[i].complete()
	}
	for _, v := range slices.Clone(all) {
		switch v.Name {
		case plainProxy, plainRespond, "redis-first", "file-first", "redis-duplicate", "file-duplicate":
			v.Name += open
			v.Base += open
			v.Proxy += open
			v.Open = true
			all = append(all, v)
		}
	}
	return all
}

// withOlder adds a variant for each of the gateway's that runs an older build and
// is compared with the newer.
func withOlder(chosen []variant) (all []variant) {
	for _, v := range chosen {
		all = append(all, v)
		if !v.isGateway() {
			continue
		}
		v.Base = v.Name
		v.Name += older
		v.Title += " – older build"
		v.server += older
		all = append(all, v)
	}
	return all
}

// older marks what runs an older build.
const older = "-older"

// complete sets what follows from the rest.
func (v *variant) complete() {
	if v.sender == "" {
		v.sender = "github"
	}
	v.Base, v.Proxy = plainProxy, plainProxy
	if v.duplicate || strings.HasSuffix(v.server, plainRespond) {
		v.Base = plainRespond
	}
	switch {
	case v.duplicate:
		v.word = "duplicate"
	case v.isGateway():
		v.word = "first"
	}
}

// isGateway reports whether this project's handler is in it.
func (v *variant) isGateway() bool {
	for _, other := range []string{plainProxy, plainRespond, "floor", "nginx"} {
		if strings.HasPrefix(v.server, other) {
			return false
		}
	}
	return true
}

// selected are the variants whose names match one of the comma-separated
// patterns, and their baselines.
func selected(patterns string) ([]variant, error) {
	all := variants()
	wanted := make(map[string]bool)
	for pattern := range strings.SplitSeq(patterns, ",") {
		found := false
		for _, v := range all {
			match, err := path.Match(strings.TrimSpace(pattern), v.Name)
			if err != nil {
				return nil, err
			}
			if match {
				found = true
				wanted[v.Name], wanted[v.Base] = true, true
				if !v.Open {
					wanted[v.Proxy] = true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("no variant is called %q", pattern)
		}
	}
	return slices.DeleteFunc(all, func(v variant) bool { return !wanted[v.Name] }), nil
}

// serverFor returns the server of a name, and starts it when it is first asked
// for.
func (r *rig) serverFor(name string) (*server, error) {
	if s := r.servers[name]; s != nil {
		return s, nil
	}
	s, err := r.startServer(name, filepath.Join(r.dir, name))
	if err != nil {
		return nil, err
	}
	r.servers[name] = s
	return s, nil
}

func (r *rig) startServer(name, dir string) (*server, error) {
	if newer, is := strings.CutSuffix(name, older); is {
		other := *r
		other.caddy = r.older
		s, err := other.startServer(newer, dir)
		r.processes = other.processes
		return s, err
	}
	file := "file " + filepath.Join(dir, "events")
	switch name {
	case "proxy":
		return r.startCaddy(caddySetup{sites: map[string]string{"github": ""}}, dir)
	case "proxy-buffered":
		return r.startCaddy(buffered(caddySetup{sites: map[string]string{"github": ""}}), dir)
	case "redis-buffered":
		return r.startCaddy(buffered(gateway(r.redis.store(), false, "github")), dir)
	case "respond":
		return r.startCaddy(caddySetup{sites: map[string]string{"github": "respond 200"}}, dir)
	case "floor":
		return r.startCaddy(caddySetup{sites: map[string]string{"github": "floor " + secret}}, dir)
	case "floor-redis":
		return r.startCaddy(caddySetup{sites: map[string]string{"github": "floor " + secret + " " + r.redis.address}}, dir)
	case "floor-respond":
		return r.startCaddy(caddySetup{sites: map[string]string{"github": "floor " + secret + "\n\trespond 200"}}, dir)
	case "redis":
		return r.startCaddy(gateway(r.redis.store(), false, "github", "paymos", "stableops"), dir)
	case "redis-log":
		return r.startCaddy(gateway(r.redis.store(), true, "github"), dir)
	case "file":
		return r.startCaddy(gateway(file, false, "github"), dir)
	case "file-log":
		return r.startCaddy(gateway(file, true, "github"), dir)
	case "always":
		return r.startCaddy(gateway(file+" {\n\t\t\tsync always\n\t\t}", false, "github"), dir)
	case "memory":
		return r.startCaddy(gateway("memory", false, "github"), dir)
	case "nginx", "nginx-lua":
		return r.startNginx(name == "nginx-lua", dir)
	}
	return nil, fmt.Errorf("no server is called %q", name)
}
