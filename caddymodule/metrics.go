package caddymodule

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are kept for the life of the process: Caddy makes a new registry for
// each configuration, and counters must not start again at every reload.
var metrics = newCollectors()

type collectors struct {
	deliveries, rejections, outcomes        *prometheus.CounterVec
	batchEvents                             *prometheus.CounterVec
	reusedIDs, idMismatches, previousSecret *prometheus.CounterVec
	claimsLost, settlementsLost             prometheus.Counter
	settlementsWaiting, upstream            prometheus.Gauge
	storeFindings, storeUp                  *prometheus.GaugeVec
}

func newCollectors() *collectors {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "caddy", Subsystem: "webhook_dedupe", Name: name, Help: help}
	}
	vec := func(n, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(name(n, help)), labels)
	}
	return &collectors{
		deliveries:         vec("deliveries_total", "Requests by what became of them; they add up to all requests of the source.", "source", "result"),
		rejections:         vec("rejections_total", "Deliveries with the result rejected, by reason.", "source", "reason"),
		outcomes:           vec("outcomes_total", "Upstream calls by how they ended.", "source", "result"),
		batchEvents:        vec("batch_events_total", "Events of batches by what each was; those of batches that were sent back do not count.", "source", "result"),
		reusedIDs:          vec("reused_ids_total", "Deliveries whose event id was seen with another body before.", "source"),
		idMismatches:       vec("id_mismatches_total", "Deliveries whose header names another event than their signed body.", "source"),
		previousSecret:     vec("previous_secret_total", "Deliveries signed with a previous secret.", "source"),
		claimsLost:         prometheus.NewCounter(prometheus.CounterOpts(name("claims_lost_total", "Claims taken over by another gateway while their delivery was still in the upstream."))),
		settlementsLost:    prometheus.NewCounter(prometheus.CounterOpts(name("settlements_lost_total", "Outcomes that were never written to the store."))),
		settlementsWaiting: prometheus.NewGauge(prometheus.GaugeOpts(name("settlements_waiting", "Outcomes that wait for the store to come back."))),
		upstream:           prometheus.NewGauge(prometheus.GaugeOpts(name("upstream_deliveries", "Deliveries that are in the upstream now."))),
		storeFindings:      prometheus.NewGaugeVec(prometheus.GaugeOpts(name("store_findings", "1 for what the last check of the Redis store did not like.")), []string{"reason"}),
		storeUp:            prometheus.NewGaugeVec(prometheus.GaugeOpts(name("store_up", "1 if all servers of the Redis store answered the last check.")), nil),
	}
}

// register puts the collectors into a configuration's registry.
func (c *collectors) register(registry *prometheus.Registry) error {
	for _, collector := range []prometheus.Collector{
		c.deliveries, c.rejections, c.outcomes, c.batchEvents, c.reusedIDs, c.idMismatches, c.previousSecret,
		c.claimsLost, c.settlementsLost, c.settlementsWaiting, c.upstream, c.storeFindings, c.storeUp,
	} {
		err := registry.Register(collector)
		if already := (prometheus.AlreadyRegisteredError{}); err != nil && !errors.As(err, &already) {
			return err
		}
	}
	return nil
}
