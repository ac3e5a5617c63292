package main

import (
	"fmt"
	"math"
	"slices"
)

// spread is the median of some values, and the quartiles.
type spread struct{ Low, Median, High float64 }

// spreadOf is NaN where there are no values.
func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		position := q * float64(len(sorted)-1)
		below := int(position)
		above := min(below+1, len(sorted)-1)
		return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
	}
	return spread{at(0.25), at(0.5), at(0.75)}
}

// text writes the median, and the quartiles behind it.
func (s spread) text(format string) string {
	if math.IsNaN(s.Median) {
		return "–"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Low, s.High)
}

func (s spread) median(format string) string {
	if math.IsNaN(s.Median) {
		return "–"
	}
	return fmt.Sprintf(format, s.Median)
}

// Values of one run.

func throughput(o *outcome) float64 { return float64(o.Requests) / o.Seconds }
func p50(o *outcome) float64        { return o.P50 }
func p99(o *outcome) float64        { return o.P99 }

// cpu is CPU time per request in microseconds.
func cpu(process string) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.CPU[process] * 1e6 / float64(o.Requests) }
}

// busy is how much of one core the server used, in percent.
func busy(o *outcome) float64 { return 100 * o.CPU["server"] / o.Seconds }

// wrong counts answers that were not what was expected.
func (w *row) wrong() (n uint64) {
	for _, run := range w.Runs {
		n += run.Wrong
	}
	return n
}

// each is a value of every run of a row.
func (w *row) each(value func(*outcome) float64) spread {
	var values []float64
	for _, run := range w.Runs {
		values = append(values, value(run))
	}
	return spreadOf(values)
}

// against compares a value with that of another row, round by round.
func (w *row) against(base *row, value func(*outcome) float64, compare func(own, base float64) float64) spread {
	var values []float64
	if base != nil {
		for i := range min(len(w.Runs), len(base.Runs)) {
			values = append(values, compare(value(w.Runs[i]), value(base.Runs[i])))
		}
	}
	return spreadOf(values)
}

func ratio(own, base float64) float64      { return own / base }
func difference(own, base float64) float64 { return own - base }
