package caddymodule

import (
	"crypto/sha256"
	"errors"
	"net/http"
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
	w      http.ResponseWriter
	r      *http.Request
	next   caddyhttp.Handler
	server *caddyhttp.Server // or nil

	start time.Time
	body  []byte
	// content is the body without its content coding, until the delivery is
	// identified; coding says why there is none.
	content []byte
	coding  error
	sum     [sha256.Size]byte // of the signed body, where more than its mark is needed
	mark    uint16            // of the signed body
	request verify.Request    // as package verify sees it
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
	placed   bool // it has one of the places of max_in_flight
	// claim is what it has claimed, and lent the store that the claim is in; nil
	// without an event id.
	claim settler
	lent  *loan
}

// settler is what a delivery has claimed and must settle: an event or a batch.
type settler interface{ Settle(dedupe.Outcome) error }

func (h *Handler) newDelivery(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, now time.Time) *delivery {
	return &delivery{Handler: h, w: w, r: r, next: next, server: serverOf(r), start: now, room: room{from: buffers}, decoding: room{from: buffers}}
}

// leaveRoom gives back what the body takes, unless the upstream call does.
func (d *delivery) leaveRoom() {
	d.decoding.giveBack()
	if !d.upstream {
		d.room.giveBack()
	}
}

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
	return d.admit()
}

// read reads the body.
func (d *delivery) read() *refusal {
	limit := d.MaxBody
	if !d.methods[d.r.Method] { // then it is a handshake or nothing
		limit = maxHandshakeBody
	}
	var err error
	timed := limitReading(d.w, d.r, d.server, d.start.Add(bodyTime))
	d.body, err = readBody(d.r, limit, d.room.take)
	timed.done()
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
	if d.check, err = d.verifier.Verify(&d.request, d.start); err != nil {
		var wire []byte
		if d.signsContent && codingOf(d.r.Header) != "" {
			wire = d.body
		}
		d.report.diagnosis = d.diagnostician.diagnose(&d.request, wire, d.start)
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
	req := &d.request
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
	d.content, d.request = nil, verify.Request{}
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

func (d *delivery) verifyRequest() verify.Request {
	req := verify.Request{Method: d.r.Method, URI: originalURI(d.r), Header: d.r.Header, Body: d.body, Content: d.content}
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

// deliver sends the delivery to the upstream and answers with what came back. It
// keeps the store until the upstream call is over.
func (d *delivery) deliver(result dedupe.Result, claim settler, lent *loan) error {
	d.upstream, d.claim = true, claim
	if lent != nil {
		lent.keep()
		d.lent = lent
	}
	d.r.Header[resultHeader] = []string{string(result)}
	d.w.Header()[resultHeader] = []string{string(result)}
	sendOnce(d.r)
	if d.DryRun {
		return d.observe()
	}
	x := &exchange{
		next: d.next, request: d.r, timeout: time.Duration(d.UpstreamTimeout), punctual: d.punctual.Load(),
		success: d.accepts, settle: d.settle, finally: d.over, exiting: exit.over,
		rec: recorder{
			sender: d.w, method: d.r.Method, limit: d.MaxResponse, prefix: d.SuccessBodyPrefix,
			word: result, limited: writeLimited(d.server),
		},
	}
	d.answer(x, x.run())
	return nil
}

// over gives back what the delivery has taken, when its upstream call is over.
func (d *delivery) over() {
	d.room.giveBack()
	d.leave()
	if d.lent != nil {
		d.lent.giveBack()
	}
}

// settle writes the outcome. It may run after the delivery has been answered.
func (d *delivery) settle(o dedupe.Outcome) {
	d.countOutcome(o)
	if d.claim == nil {
		return
	}
	if err := d.claim.Settle(o); err != nil {
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
		x.rec.restore()
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
		x.rec.restore()
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
