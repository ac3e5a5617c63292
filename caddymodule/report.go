package caddymodule

import (
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// The results of deliveries that never reach the state machine.
const (
	resultRejected  dedupe.Result = "rejected"
	resultHandshake dedupe.Result = "handshake"
	resultVerified  dedupe.Result = "verified"
)

// report is what a delivery leaves behind: one log line, one count, and the
// placeholders. It never holds a secret, a signature or a body.
type report struct {
	result  dedupe.Result
	reason  string // of a rejection
	outcome dedupe.Outcome
	attempt int
	size    int // of the body, in bytes
	status  int // what the sender got; 0 if it was not written here
	age     time.Duration
	secret  int // 1 is the first
	doneAt  time.Time
	reused  bool
	done    int // events of a batch that were done before
	// diagnosis is what is odd about a delivery that does not verify.
	diagnosis []string
	// mu guards err against a chain that was given up and reads placeholders on.
	mu  sync.Mutex
	err error
}

// verified notes what a genuine delivery says of itself.
func (rep *report) verified(d *delivery) {
	rep.secret = d.check.Secret + 1
	if !d.check.Timestamp.IsZero() {
		rep.age = d.start.Sub(d.check.Timestamp)
	}
	if rep.secret > d.currentSecrets {
		metrics.previousSecret.WithLabelValues(d.Source).Inc()
	}
}

// identified notes where the delivery's id was found in two forms.
func (rep *report) identified(d *delivery) {
	if d.id.HeaderDiffers {
		metrics.idMismatches.WithLabelValues(d.Source).Inc()
		d.logger.Warn("the header names another event than the signed body; the signed id counts",
			zap.String("source", d.Source), zap.String("event_id", shortened(d.id.Text)))
	}
}

// admitted notes the verdict.
func (rep *report) admitted(v dedupe.Verdict, d *delivery) {
	rep.result, rep.doneAt, rep.err = v.Result, v.DoneAt, v.StoreError
	if v.Claim != nil {
		rep.attempt = v.Claim.Attempt()
	}
	rep.reused = rep.reused || v.Reused
	if rep.reused {
		metrics.reusedIDs.WithLabelValues(d.Source).Inc()
		d.logger.Warn("one event id came with two different bodies: is it the id of the event?",
			zap.String("source", d.Source), zap.String("event_id", shortened(d.id.Text)), zap.String("on_reused_id", d.OnReusedID))
	}
}

// admittedBatch notes the verdict on several events.
func (rep *report) admittedBatch(v dedupe.BatchVerdict, d *delivery) {
	rep.admitted(v.Verdict, d)
	rep.attempt, rep.done = v.Claims.Attempt(), len(v.Done)
	counts := map[dedupe.Result]int{dedupe.ResultDuplicate: len(v.Done)}
	for _, c := range v.Claims {
		counts[c.Result()]++
	}
	for result, n := range counts {
		metrics.batchEvents.WithLabelValues(d.Source, string(result)).Add(float64(n))
	}
}

// delivered notes how the upstream call ended.
func (rep *report) delivered(v verdict) {
	rep.outcome = v.outcome
	if v.err != nil {
		rep.mu.Lock()
		defer rep.mu.Unlock()
		rep.err = v.err
	}
}

// refused notes a refusal.
func (rep *report) refused(ref *refusal) {
	rep.result, rep.reason, rep.err = resultRejected, ref.reason, ref.err
}

// file writes the report: the counters, the log line, the placeholders and the
// fields of the access log.
func (d *delivery) file() {
	rep := &d.report
	metrics.deliveries.WithLabelValues(d.Source, string(rep.result)).Inc()
	if rep.reason != "" {
		metrics.rejections.WithLabelValues(d.Source, rep.reason).Inc()
	}
	if entry := d.logger.Check(rep.level(), "delivery"); entry != nil {
		entry.Write(d.logFields()...)
	}
}

// level makes what an operator should look at stand out.
func (rep *report) level() zapcore.Level {
	switch {
	case rep.outcome == dedupe.OutcomeUnanswered, rep.outcome == dedupe.OutcomeNotSent, rep.reason == reasonStore:
		return zap.ErrorLevel
	case rep.reason != "", rep.outcome == dedupe.OutcomeRefused, rep.result == dedupe.ResultHeld, rep.err != nil:
		return zap.WarnLevel
	}
	return zap.InfoLevel
}

func (d *delivery) logFields() []zap.Field {
	rep := &d.report
	fields := append(make([]zap.Field, 0, 20),
		zap.String("source", d.Source),
		zap.String("result", string(rep.result)),
		zap.Int("size", rep.size),
		zap.Duration("duration", time.Since(d.start)))
	add := func(is bool, f zap.Field) {
		if is {
			fields = append(fields, f)
		}
	}
	add(rep.reason != "", zap.String("reason", rep.reason))
	add(d.id.Text != "", zap.String("event_id", shortened(d.id.Text)))
	add(len(d.batch) > 0, zap.Int("events", len(d.batch)))
	add(rep.done > 0, zap.Int("events_done", rep.done))
	add(rep.attempt > 0, zap.Int("attempt", rep.attempt))
	add(rep.outcome != "", zap.String("outcome", string(rep.outcome)))
	add(rep.status > 0, zap.Int("status", rep.status))
	add(rep.age != 0, zap.Duration("timestamp_age", rep.age))
	add(rep.secret > 0, zap.Int("secret", rep.secret))
	add(!rep.doneAt.IsZero(), zap.Time("done_at", rep.doneAt))
	add(rep.reused, zap.Bool("reused_id", true))
	add(d.id.HeaderDiffers, zap.Bool("header_id_differs", true))
	add(d.r.Context().Err() != nil, zap.Bool("sender_gone", true))
	add(d.DryRun, zap.Bool("dry_run", true))
	add(rep.err != nil, zap.Error(rep.err))
	add(len(rep.diagnosis) > 0, zap.Strings("diagnosis", rep.diagnosis))
	return append(fields, d.extra...)
}

// publish sets the placeholders and the fields of the access log. It runs before
// anything is answered, for those who read them while the answer is made.
func (d *delivery) publish() {
	if repl, ok := d.r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(d.placeholder)
	}
	if d.server != nil && d.server.Logs == nil {
		return // no access log, for which Caddy would make room in each request
	}
	if extra, ok := d.r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("webhook_dedupe", accessFields{d}))
	}
}

// placeholder evaluates {http.webhook_dedupe.*}.
func (d *delivery) placeholder(key string) (any, bool) {
	switch key {
	case "http.webhook_dedupe.event_id":
		return d.id.Text, true
	case "http.webhook_dedupe.source":
		return d.Source, true
	case "http.webhook_dedupe.result":
		return string(d.report.result), true
	case "http.webhook_dedupe.attempt":
		return strconv.Itoa(d.report.attempt), true
	case "http.webhook_dedupe.error":
		d.report.mu.Lock()
		defer d.report.mu.Unlock()
		if d.report.err == nil {
			return "", true
		}
		return d.report.err.Error(), true
	}
	return nil, false
}

// accessFields are the delivery's fields in Caddy's access log, evaluated when
// that is written.
type accessFields struct{ d *delivery }

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (a accessFields) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("source", a.d.Source)
	enc.AddString("result", string(a.d.report.result))
	if a.d.id.Text != "" {
		enc.AddString("event_id", shortened(a.d.id.Text))
	}
	return nil
}

// shortened bounds what a hostile id can put into a log.
func shortened(id string) string {
	const most = 200
	if len(id) <= most {
		return id
	}
	return id[:most] + "... (" + strconv.Itoa(len(id)) + " bytes)"
}
