package caddymodule

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// delivery is one request on its way through the gateway: read, verified,
// identified, admitted, proxied, settled, answered.
type delivery struct {
	*Handler
	w    http.ResponseWriter
	r    *http.Request
	next caddyhttp.Handler

	start time.Time
	body  []byte
	// content is the body without its content coding, until the delivery is
	// identified; coding says why there is none.
	content []byte
	coding  error
	sum     [sha256.Size]byte // of the signed body, where more than its mark is needed
	mark    uint16            // of the signed body
	request *verify.Request   // as package verify sees it
	check   verify.Result
	digest  [sha256.Size]byte // of all signed bytes, for the replay guard
	id      verify.ID
	batch   []verify.ID // where a body carries several events; id is their summary then
	// report is what the log line and the metrics will say.
	report report
	extra  []zap.Field // the route's own log fields
	// room is the memory for the body. It is given back by whoever is the last to
	// use it: an upstream call may outlive the handler.
	room     room
	upstream bool // there is, or was, an upstream call
	// decoding is the memory for the content.
	decoding room
}

func (h *Handler) newDelivery(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, now time.Time) *delivery {
	return &delivery{Handler: h, w: w, r: r, next: next, start: now, room: room{from: buffers}, decoding: room{from: buffers}}
}

// leaveRoom gives back what the body takes, unless the upstream call does.
func (d *delivery) leaveRoom() {
	d.decoding.giveBack()
	if !d.upstream {
		d.room.giveBack()
	}
}

// storeRetry is when senders are asked to come again while the store is away.
const storeRetry = 5 * time.Second

// serve takes the delivery all the way. An error is returned only where the
// delivery passes as if the gateway were not there.
func (d *delivery) serve() error {
	if ref := d.read(); ref != nil {
		return d.refuse(ref)
	}
	if d.isHandshake() {
		return d.passHandshake()
	}
	if ref := d.authenticate(); ref != nil {
		return d.refuse(ref)
	}
	if d.isSignedHandshake() {
		return d.passHandshake()
	}
	if ref := d.identify(); ref != nil {
		return d.refuse(ref)
	}
	if d.verifier.VerifyOnly() {
		return d.forward()
	}
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
	leave, ref := d.enter()
	if ref != nil {
		return d.refuse(ref)
	}
	if d.batch != nil {
		return d.deliverBatch(lent, leave)
	}
	e := d.event(lent.reuse)
	e.Waiting = func() { leave(); d.dropBody() } // a copy that waits takes no place
	v, err := lent.gate.Admit(d.r.Context(), e, d.policy)
	if err != nil {
		leave()
		return d.refuse(unavailable(reasonStore, storeRetry, err))
	}
	d.report.admitted(v, d)
	if v.Claim == nil {
		leave()
		return d.answerCopy(v)
	}
	lent.keep()
	return d.deliver(v.Result, func(o dedupe.Outcome) { d.settle(v.Claim, o) }, func() { leave(); lent.giveBack() })
}

// read reads the body.
func (d *delivery) read() *refusal {
	limit := d.MaxBody
	if !d.methods[d.r.Method] { // then it is a handshake or nothing
		limit = maxHandshakeBody
	}
	var err error
	inTime := limitReading(d.w, d.r, d.start.Add(bodyTime))
	d.body, err = readBody(d.r, limit, d.room.take)
	inTime()
	d.report.size = len(d.body)
	if err != nil {
		resumeBody(d.r, d.body)
		if limit != d.MaxBody && errors.As(err, new(errTooLarge)) {
			return notAllowed()
		}
		return unread(err)
	}
	setBody(d.r, d.body)
	return nil
}

// authenticate verifies the delivery. Nothing before its end touches the store,
// so that strangers cannot make it work.
func (d *delivery) authenticate() *refusal {
	if !d.methods[d.r.Method] {
		return notAllowed()
	}
	if d.signsContent && d.decode() != nil {
		return unread(d.coding)
	}
	var err error
	d.request = d.verifyRequest()
	if d.check, err = d.verifier.Verify(d.request, d.start); err != nil {
		var wire []byte
		if d.signsContent && codingOf(d.r.Header) != "" {
			wire = d.body
		}
		d.report.diagnosis = d.diagnostician.diagnose(d.request, wire, d.start)
		return d.unverified(err)
	}
	d.report.verified(d)
	if !d.signsContent {
		_ = d.decode() // matters only to those who look for JSON
		d.request.Content = d.content
	}
	return nil
}

// decode takes the content coding off the body.
func (d *delivery) decode() error {
	d.content, d.coding = decode(codingOf(d.r.Header), d.body, d.MaxBody, d.decoding.take)
	return d.coding
}

// identify finds out which event the delivery is of.
func (d *delivery) identify() *refusal {
	req := d.request
	var err error
	switch {
	case d.verifier.VerifyOnly():
	case d.verifier.Batch():
		d.batch, err = d.verifier.EventIDs(req, d.check)
		d.id.Text = summary(d.batch)
	default:
		d.id, err = d.verifier.EventID(req, d.check)
	}
	switch {
	case err != nil && d.coding != nil:
		return unread(d.coding)
	case err != nil:
		return d.unverified(err)
	}
	if !d.verifier.VerifyOnly() {
		d.sumBody(req)
	}
	if d.replayGuard {
		d.digest = d.verifier.SignedDigest(req, d.check)
	}
	d.report.identified(d)
	d.extraFields()
	d.content, d.request = nil, nil
	d.decoding.giveBack()
	return nil
}

// sumBody tells the body from others under the same id. Where nothing but its mark
// is kept a checksum will do: a hash takes as long as the signature.
func (d *delivery) sumBody(req *verify.Request) {
	d.mark = dedupe.MarkOf(d.verifier.BodyChecksum(req, d.check))
	if d.forwardReused && d.batch == nil || d.replayGuard && !d.verifier.BodySigned() {
		d.sum = d.verifier.BodyDigest(req, d.check)
	}
}

func (d *delivery) verifyRequest() *verify.Request {
	req := &verify.Request{Method: d.r.Method, URI: originalURI(d.r), Header: d.r.Header, Body: d.body, Content: d.content}
	if d.signsContent {
		req.Body = d.content
	}
	return req
}

// originalURI is the path and query as the sender sent them, before any rewrite.
func originalURI(r *http.Request) string {
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && orig.RequestURI != "" {
		return orig.RequestURI
	}
	return r.RequestURI
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

// enter takes one of the places of max_in_flight. leave gives it back; further
// calls do nothing.
func (d *delivery) enter() (leave func(), ref *refusal) {
	if d.MaxInFlight <= 0 {
		return func() {}, nil
	}
	leave = sync.OnceFunc(func() { d.places.Add(-1) })
	if d.places.Add(1) <= int64(d.MaxInFlight) {
		return leave, nil
	}
	leave()
	return nil, unavailable(reasonBusy, soon(), fmt.Errorf("%d deliveries are in the upstream, which is max_in_flight", d.MaxInFlight))
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

// deliver sends the delivery to the upstream and answers with what came back.
// settle is told how it ended; finally is called when the upstream call is over.
func (d *delivery) deliver(result dedupe.Result, settle func(dedupe.Outcome), finally func()) error {
	underWay.add()
	d.upstream = true
	end := func() {
		d.room.giveBack()
		finally()
	}
	d.r.Header.Set(resultHeader, string(result))
	sendOnce(d.r)
	var arrived sync.Once
	settleAndArrive := func(o dedupe.Outcome) {
		defer arrived.Do(arrive)
		settle(o)
	}
	if d.DryRun {
		defer end()
		return d.observe(settleAndArrive)
	}
	x := &exchange{
		next: d.next, request: d.r, timeout: time.Duration(d.UpstreamTimeout),
		success: d.accepts, settle: settleAndArrive, exiting: exit.over, punctual: d.punctual.Load(),
	}
	d.w.Header().Set(resultHeader, string(result))
	x.rec = newRecorder(d.w, d.r.Method, d.MaxResponse, result, x.overflowed)
	x.rec.prefix = d.SuccessBodyPrefix
	x.rec.deadline, x.rec.limited = time.Now().Add(x.timeout), writeLimited(d.r)
	d.answer(x, x.run(end))
	return nil
}

// settle writes the outcome. It may run after the delivery has been answered.
func (d *delivery) settle(claim interface{ Settle(dedupe.Outcome) error }, o dedupe.Outcome) {
	d.countOutcome(o)
	if err := claim.Settle(o); err != nil {
		d.logger.Error("the outcome could not be written to the store and waits",
			zap.String("source", d.Source), zap.String("event_id", shortened(d.id.Text)), zap.String("outcome", string(o)), zap.Error(err))
	}
}

func (d *delivery) countOutcome(o dedupe.Outcome) {
	metrics.outcomes.WithLabelValues(d.Source, string(o)).Inc()
}

// answer ends a delivery that was in the upstream.
func (d *delivery) answer(x *exchange, res result) {
	d.report.delivered(res.verdict)
	if res.panicked != nil {
		d.logger.Error("a handler panicked", zap.String("source", d.Source), zap.String("event_id", shortened(d.id.Text)),
			zap.Any("panic", res.panicked), zap.ByteString("stack", res.stack))
		panic(res.panicked)
	}
	switch {
	case res.verdict.status == 0:
		d.report.status = res.answer.status
		x.rec.finish()
	case res.answer.begun:
		// The sender has a part of the answer: it must see that the rest is missing.
		panic(http.ErrAbortHandler)
	default:
		d.respond(res.verdict.status, d.retryAfter(res), "", "")
	}
}

// retryAfter is when the event will be let through again.
func (d *delivery) retryAfter(res result) time.Duration {
	if res.outcome == dedupe.OutcomeUnanswered && !d.verifier.VerifyOnly() {
		return d.policy.Lease
	}
	return time.Second
}

func (d *delivery) respond(status int, retryAfter time.Duration, contentType, body string) {
	d.report.status = status
	respond(d.w, status, retryAfter, contentType, body)
}

// refuse answers what the gateway itself refuses.
func (d *delivery) refuse(ref *refusal) error {
	d.report.refused(ref)
	if d.DryRun {
		return d.passThrough()
	}
	if ref.status == http.StatusMethodNotAllowed {
		d.w.Header().Set("Allow", d.allowed(d.r.Method))
	}
	d.respond(ref.status, ref.retryAfter, "", "")
	return nil
}
