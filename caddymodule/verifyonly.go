package caddymodule

import (
	"errors"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// verifyOnly reports whether the route takes no event id (`event_id none`): its
// deliveries are verified, and copies are not told apart.
func (h *Handler) verifyOnly() bool {
	return len(h.EventID) == 1 && h.EventID[0].Kind == verify.NoID
}

// checkVerifyOnly refuses what such a route could not keep.
func (h *Handler) checkVerifyOnly() error {
	switch {
	case !h.verifyOnly():
		return nil
	case h.OnUnknown == "hold":
		return errors.New("on_unknown hold needs to know the event: it does not go with event_id none")
	case h.ReplayGuard == "on":
		return errors.New("replay_guard needs an event id: it does not go with event_id none")
	}
	h.ReplayGuard = or(h.ReplayGuard, "off")
	return nil
}

// forward sends a delivery without an event id to the upstream. The store plays
// no part in it.
func (d *delivery) forward() error {
	if ref := d.enter(); ref != nil {
		return d.refuse(ref)
	}
	d.report.result = resultVerified
	return d.deliver(resultVerified, nil, nil)
}
