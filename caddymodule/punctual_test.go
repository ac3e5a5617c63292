package caddymodule

import (
	"reflect"
	"strings"
	"testing"
)

// TestOnlyChainsKnownToEndInTimeArePunctual: HOOK is the handler, SLOW one that
// may take no notice of its context.
func TestOnlyChainsKnownToEndInTimeArePunctual(t *testing.T) {
	for name, c := range map[string]struct {
		site string
		want bool
	}{
		"a proxy":                              {"HOOK\nreverse_proxy localhost:1", true},
		"nothing":                              {"HOOK", true},
		"handlers on the way":                  {"HOOK\nroot /srv\nheader X y\nencode gzip\nrequest_header X y\nrewrite /hook /x\nreverse_proxy localhost:1", true},
		"another case of the request":          {"handle /hook {\nHOOK\nreverse_proxy localhost:1\n}\nhandle {\nphp_fastcgi localhost:1\n}", true},
		"not another case":                     {"handle /hook {\nHOOK\nreverse_proxy localhost:1\n}\nroute {\nphp_fastcgi localhost:1\n}", false},
		"behind all cases":                     {"route {\nhandle /hook {\nHOOK\n}\nhandle {\nrespond 200\n}\nphp_fastcgi localhost:1\n}", false},
		"files":                                {"HOOK\nfile_server", false},
		"a look at files":                      {"HOOK\n@file file\nreverse_proxy @file localhost:1", false},
		"a look at no files":                   {"HOOK\n@none not file\nreverse_proxy @none localhost:1", false},
		"matchers":                             {"HOOK\n@some {\nnot path /x\nmethod POST\nheader X y\n}\nreverse_proxy @some localhost:1", true},
		"FastCGI":                              {"HOOK\nphp_fastcgi localhost:1", false},
		"FastCGI by its transport":             {"HOOK\nreverse_proxy localhost:1 {\ntransport fastcgi\n}", false},
		"FastCGI on another route":             {"HOOK\nreverse_proxy localhost:1\nphp_fastcgi /app/* localhost:1", false},
		"FastCGI on another site":              {"HOOK\nreverse_proxy localhost:1\n}\nhttp://other.test {\nphp_fastcgi localhost:1", true},
		"FastCGI on a site of all hosts":       {"HOOK\nreverse_proxy localhost:1\n}\nhttp:// {\nphp_fastcgi localhost:1", true},
		"FastCGI before":                       {"route {\nphp_fastcgi /app/* localhost:1\nHOOK\nreverse_proxy localhost:1\n}", true},
		"FastCGI behind":                       {"route {\nHOOK\nphp_fastcgi /app/* localhost:1\nreverse_proxy localhost:1\n}", false},
		"FastCGI behind its block":             {"route {\nroute {\nHOOK\nheader X y\n}\nphp_fastcgi localhost:1\n}", false},
		"FastCGI in a block behind":            {"route {\nHOOK\nroute {\nphp_fastcgi localhost:1\n}\n}", false},
		"another module":                       {"HOOK\nSLOW", false},
		"another module for answers":           {"HOOK\nreverse_proxy localhost:1 {\nhandle_response {\nSLOW\n}\n}", false},
		"another module to intercept":          {"HOOK\nintercept {\nhandle_response {\nSLOW\n}\n}\nreverse_proxy localhost:1", false},
		"a module for answers, which is known": {"HOOK\nreverse_proxy localhost:1 {\nhandle_response {\nrespond 503\n}\n}", true},
		"upstreams that are looked up":         {"HOOK\nreverse_proxy {\ndynamic a localhost 1\n}", false},
		"a proxy that tries for a time":        {"HOOK\nreverse_proxy localhost:1 {\nlb_try_duration 5s\n}", false},
		"a proxy that tries again":             {"HOOK\nreverse_proxy localhost:1 {\nlb_retries 2\n}", false},
		"the answer to another request":        {"reverse_proxy localhost:1 {\nhandle_response {\nHOOK\ncopy_response\n}\n}", false},
		"a named route":                        {"HOOK\ninvoke named\n}\n&(named) {\nreverse_proxy localhost:1", false},
		"in a named route":                     {"invoke named\n}\n&(named) {\nHOOK\nreverse_proxy localhost:1", false},
		"for answers":                          {"reverse_proxy localhost:1 {\nhandle_response {\nHOOK\nreverse_proxy localhost:1\n}\n}", true},
		"for answers, FastCGI behind":          {"route {\nintercept {\nhandle_response {\nHOOK\n}\n}\nphp_fastcgi localhost:1\n}", false},
		"for errors":                           {"handle_errors {\nHOOK\nreverse_proxy localhost:1\n}", true},
		"for errors, FastCGI":                  {"handle_errors {\nHOOK\nphp_fastcgi localhost:1\n}", false},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			site := strings.NewReplacer("HOOK", "webhook_dedupe stripe {\nsecret "+secret+"\n}", "SLOW", "test_upstream none").Replace(c.site)
			ctx, err := provision(t, "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore test "+store.name+"\n}\n}\nhttp://gateway.test {\n"+site+"\n}", newLogBook())
			if err != nil {
				t.Fatal(err)
			}
			app, err := ctx.App("http")
			if err != nil {
				t.Fatal(err)
			}
			tellPunctual(ctx)
			hooks := hooksOf(app)
			if len(hooks) != 1 {
				t.Fatalf("found %d handlers", len(hooks))
			}
			if got := hooks[0].punctual.Load(); got != c.want {
				t.Errorf("punctual: %t, want %t", got, c.want)
			}
		})
	}
}

// hooksOf finds the handlers of this package in v, wherever they are.
func hooksOf(v any) (found []*Handler) {
	seen := make(map[any]bool)
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface:
			look(v.Elem())
		case reflect.Pointer:
			if v.IsNil() || seen[v.Interface()] {
				return
			}
			seen[v.Interface()] = true
			if h, ok := v.Interface().(*Handler); ok {
				found = append(found, h)
			}
			look(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					look(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				look(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				look(v.MapIndex(key))
			}
		}
	}
	look(reflect.ValueOf(v))
	return found
}
