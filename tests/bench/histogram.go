package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are less than one percent wide.
type histogram struct {
	buckets [64 * perOctave]uint64
	count   uint64
	max     time.Duration
}

const (
	octaveBits = 7
	perOctave  = 1 << octaveBits
)

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.count++
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
	h.count += other.count
	h.max = max(h.max, other.max)
}

// quantile is the duration that the fraction q of all does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	var seen uint64
	for i, n := range h.buckets {
		if seen += n; seen > rank {
			return lowerBound(i)
		}
	}
	return h.max
}

// bucketOf numbers the buckets: an octave is split into perOctave of one width.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < perOctave {
		return int(n)
	}
	shift := bits.Len64(n) - octaveBits - 1
	return (shift+1)*perOctave + int(n>>shift) - perOctave
}

func lowerBound(bucket int) time.Duration {
	octave, rest := bucket/perOctave, bucket%perOctave
	if octave == 0 {
		return time.Duration(rest)
	}
	return time.Duration(perOctave+rest) << (octave - 1)
}
