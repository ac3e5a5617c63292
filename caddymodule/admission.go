package caddymodule

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// storeRetry is when senders are asked to come again while the store is away.
const storeRetry = 5 * time.Second

// admit asks what shall become of an identified delivery, and sees to that.
func (d *delivery) admit() error {
	lent, err := d.app.borrow()
	if err != nil {
		return d.refuse(unavailable(reasonStore, storeRetry, err))
	}
	// The store is given back when the last one who uses it is done: this
	// handler, or an upstream call that outlives it.
	defer lent.giveBack()
	if ref := d.guard(lent.gate); ref != nil {
		return d.refuse(ref)
	}
	if ref := d.enter(); ref != nil {
		return d.refuse(ref)
	}
	if d.batch != nil {
		return d.deliverBatch(lent)
	}
	e := d.event(lent.reuse)
	e.Waiting = d.waits
	v, err := lent.gate.Admit(d.r.Context(), e, d.policy)
	if err != nil {
		d.leave()
		return d.refuse(unavailable(reasonStore, storeRetry, err))
	}
	d.report.admitted(v, d)
	if v.Claim == nil {
		d.leave()
		return d.answerCopy(v)
	}
	return d.deliver(v.Result, v.Claim, lent)
}

// guard refuses signed bytes that came before under another id, or with another
// body: what the signature does not cover of these, anybody who saw one delivery
// could change and send it again as any event.
func (d *delivery) guard(gate *dedupe.Gate) *refusal {
	if !d.replayGuard {
		return nil
	}
	until := d.policy.TTL
	if tolerance := d.verifier.Tolerance(); tolerance > 0 {
		// A second more: the tolerance is inclusive, and clocks tick.
		until = d.check.Timestamp.Add(tolerance).Sub(d.start) + time.Second
	}
	key := dedupe.BindingKey(d.Source, d.digest)
	bound := d.bindingID()
	if !d.verifier.BodySigned() {
		bound += "\x00" + string(d.sum[:])
	}
	same, err := gate.Bind(key, dedupe.BindingValue(bound), until)
	switch {
	case err != nil && d.policy.ForwardOnError:
		return nil
	case err != nil:
		return unavailable(reasonStore, storeRetry, err)
	case !same:
		return unavailable(reasonReplayed, d.policy.Lease, errReplayed)
	}
	return nil
}

var errReplayed = errors.New("the same signed bytes came before under another event id or with another body")

// enter takes one of the places of max_in_flight.
func (d *delivery) enter() *refusal {
	if d.MaxInFlight <= 0 {
		return nil
	}
	d.placed = true
	if d.places.Add(1) <= int64(d.MaxInFlight) {
		return nil
	}
	d.leave()
	return unavailable(reasonBusy, soon(), fmt.Errorf("%d deliveries are in the upstream, which is max_in_flight", d.MaxInFlight))
}

// leave gives the place back, if there is one.
func (d *delivery) leave() {
	if d.placed {
		d.placed = false
		d.places.Add(-1)
	}
}

// waits is called when the delivery begins to wait for another one.
func (d *delivery) waits() {
	d.leave() // a copy that waits takes no place
	d.dropBody()
}

// event is the delivery as the state machine sees it.
func (d *delivery) event(reuse *reuseMemory) (e dedupe.Event) {
	e, d.report.reused = d.eventOf(&d.id, d.sum, reuse)
	e.Mark = d.mark
	return e
}

// eventOf is the event of an id that came with a body of this SHA-256, but for its
// mark, and whether the id is known to have come with another one.
func (d *delivery) eventOf(id *verify.ID, sum [sha256.Size]byte, reuse *reuseMemory) (e dedupe.Event, reused bool) {
	if !d.forwardReused {
		e.Key = dedupe.Key(d.Source, id.Key, "")
		return e, false
	}
	fingerprint := dedupe.Fingerprint(sum)
	e.Key = dedupe.Key(d.Source, id.Key, fingerprint)
	return e, reuse.seen(strings.TrimSuffix(e.Key, fingerprint), binary.BigEndian.Uint64(sum[:]))
}

// dropBody forgets the body of a copy that waits: whatever comes of it, it will
// not be proxied.
func (d *delivery) dropBody() {
	if !d.DryRun {
		d.body = nil
		d.r.Body = http.NoBody
		d.room.giveBack()
	}
}

// answerCopy answers a delivery that does not go to the upstream.
func (d *delivery) answerCopy(v dedupe.Verdict) error {
	if d.DryRun {
		return d.passThrough()
	}
	d.w.Header().Set(resultHeader, string(v.Result))
	if v.Result == dedupe.ResultDuplicate {
		d.respond(d.Duplicate.Status, 0, d.Duplicate.ContentType, d.Duplicate.Body)
		return nil
	}
	d.respond(http.StatusServiceUnavailable, v.RetryAfter, "", "")
	return nil
}
