package caddymodule

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// doneHeader lists, towards the upstream, the events of a batch that it has
// accepted before: their ids with commas between them, percent-encoded. An
// asterisk at the end stands for more than fit.
const doneHeader = "Webhook-Dedupe-Done"

// maxDoneHeader bounds that list, since servers bound the headers they take.
const maxDoneHeader = 4096

// deliverBatch admits a delivery of several events and takes it to its end.
func (d *delivery) deliverBatch(lent *loan) error {
	v, err := lent.gate.AdmitAll(d.events(lent.reuse), d.policy)
	if err != nil {
		d.leave()
		return d.refuse(unavailable(reasonStore, storeRetry, err))
	}
	d.report.admittedBatch(v, d)
	if v.Claims == nil {
		d.leave()
		return d.answerCopy(v.Verdict)
	}
	if len(v.Done) > 0 {
		d.r.Header.Set(doneHeader, d.listOf(v.Done))
	}
	return d.deliver(v.Result, v.Claims, lent)
}

// events are the events of a batch as the state machine sees them. What stands
// for the body of one is its element: a batch may be composed anew when it is
// sent again.
func (d *delivery) events(reuse *reuseMemory) []dedupe.Event {
	events := make([]dedupe.Event, len(d.batch))
	for i := range d.batch {
		var reused bool
		events[i], reused = d.eventOf(&d.batch[i], d.batch[i].Sum, reuse)
		events[i].Mark = dedupe.MarkOf(binary.BigEndian.Uint32(d.batch[i].Sum[:]))
		d.report.reused = d.report.reused || reused
	}
	return events
}

// summary names the events of a batch by the first of them.
func summary(ids []verify.ID) string {
	const most = 3
	var b strings.Builder
	for i, id := range ids {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(ids)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(id.Text)
	}
	return b.String()
}

// bindingID is what the replay guard binds the signed bytes to.
func (d *delivery) bindingID() string {
	if d.batch == nil {
		return d.id.Key
	}
	var b strings.Builder
	for _, id := range d.batch {
		b.WriteString(strconv.Itoa(len(id.Key)) + ":" + id.Key)
	}
	return b.String()
}

// listOf writes the ids of these events of the batch for doneHeader.
func (d *delivery) listOf(indices []int) string {
	var b strings.Builder
	for n, i := range indices {
		id := percentEncoded(d.batch[i].Text)
		if b.Len()+len(id)+len(",,*") > maxDoneHeader {
			if n > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('*')
			break
		}
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(id)
	}
	return b.String()
}

// percentEncoded keeps what RFC 3986 calls unreserved, and the colon.
func percentEncoded(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~:", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
