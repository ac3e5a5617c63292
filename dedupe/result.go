package dedupe

// Result is what became of one delivery of an event. Its text is the word that
// users see in headers, logs and metrics.
type Result string

// The results of a delivery.
const (
	// ResultFirst: nobody has seen the event before; it may go to the upstream.
	ResultFirst Result = "first"
	// ResultRetry: earlier tries failed and surely left nothing half done.
	ResultRetry Result = "retry"
	// ResultPossibleRepeat: an earlier try may have reached the upstream.
	ResultPossibleRepeat Result = "possible-repeat"
	// ResultDuplicate: the upstream has accepted the event already.
	ResultDuplicate Result = "duplicate"
	// ResultInFlight: another delivery of the event is under way, or ended in doubt
	// less than a lease ago.
	ResultInFlight Result = "in-flight"
	// ResultHeld: an earlier try is in doubt and the route would rather stop than
	// risk a repeat.
	ResultHeld Result = "held"
)

// Outcome is how the upstream call of a claimed delivery ended.
type Outcome string

// The outcomes of an upstream call.
const (
	// OutcomeAccepted: a complete answer that means success.
	OutcomeAccepted Outcome = "accepted"
	// OutcomeRefused: a complete answer that does not.
	OutcomeRefused Outcome = "refused"
	// OutcomeNotSent: the request surely never reached an upstream.
	OutcomeNotSent Outcome = "not-sent"
	// OutcomeUnanswered: the request may have gone out and no complete answer came
	// back, so that nobody can know whether the upstream did the work.
	OutcomeUnanswered Outcome = "in-doubt"
)

// resultOf names the claim that made r.
func resultOf(r Record) Result {
	switch {
	case r.Doubted:
		return ResultPossibleRepeat
	case r.Attempt > 1:
		return ResultRetry
	}
	return ResultFirst
}
