package caddymodule

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// handshake is how a sender asks, before its first delivery, whether the
// endpoint is really the receiver's. Such a request is unsigned and carries no
// event: it goes to the upstream as it is.
type handshake struct {
	// method of the request; empty if the route has no handshake.
	method string
}

// handshakes are all there are, by name.
var handshakes = map[string]handshake{
	"get":  {http.MethodGet},
	"head": {http.MethodHead},
}

// handshakeNamed returns the handshake of that name, in either case.
func handshakeNamed(name string) (handshake, error) {
	if name == "" {
		return handshake{}, nil
	}
	if hs, ok := handshakes[strings.ToLower(name)]; ok {
		return hs, nil
	}
	var names []string
	for n := range handshakes {
		names = append(names, n)
	}
	slices.Sort(names)
	return handshake{}, fmt.Errorf("unknown handshake %q; there are %s", name, strings.Join(names, ", "))
}

func (hs handshake) matches(r *http.Request) bool {
	return hs.method != "" && r.Method == hs.method
}
