package caddymodule

import (
	"sync"
	"sync/atomic"
)

// places count the deliveries that are in the upstream, for max_in_flight, by
// store and source. They outlive reloads, as the deliveries do.
var places sync.Map // *atomic.Int64 by placeKey

type placeKey struct{ store, source string }

func placesOf(store, source string) *atomic.Int64 {
	taken, _ := places.LoadOrStore(placeKey{store, source}, new(atomic.Int64))
	return taken.(*atomic.Int64)
}
