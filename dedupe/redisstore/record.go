package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// The letters that begin the value of an event that is not done. record.lua
// knows them too.
const (
	letterInFlight = "I"
	letterInDoubt  = "D"
	letterFailed   = "F"
)

// encode is the value of a claim, as record.lua writes it as well:
//
//	<letter>:<token>:<attempt>:<doubted 0 or 1>:<lease ms>:<ttl ms>
//
// The time to live is in it so that the key's remaining one tells its age.
func encode(letter, token string, attempt int, doubted bool, h dedupe.Hold) string {
	b := append(make([]byte, 0, 96), letter...)
	b = append(append(b, ':'), token...)
	b = strconv.AppendInt(append(b, ':'), int64(attempt), 10)
	b = append(append(b, ':'), flag(doubted)...)
	b = strconv.AppendInt(append(b, ':'), milliseconds(h.Lease), 10)
	b = strconv.AppendInt(append(b, ':'), milliseconds(h.TTL), 10)
	return string(b)
}

// decode reads the value of an event and the time that its key has left, in
// milliseconds as PTTL gives it. All that encode and a done event cannot have
// written is [dedupe.ErrCorrupt].
func decode(value string, left int64) (dedupe.Record, error) {
	if left < 0 {
		return dedupe.Record{}, fmt.Errorf("%w: it does not expire", dedupe.ErrCorrupt)
	}
	if mark, ok := decodeMark(value); ok {
		return dedupe.Record{State: dedupe.Completed, Mark: mark, Left: duration(left)}, nil
	}
	fields, ok := split(value)
	if !ok {
		return dedupe.Record{}, dedupe.ErrCorrupt
	}
	attempt, err1 := strconv.ParseUint(fields[2], 10, 31)
	lease, err2 := strconv.ParseUint(fields[4], 10, 53)
	ttl, err3 := strconv.ParseUint(fields[5], 10, 53)
	if err1 != nil || err2 != nil || err3 != nil || (fields[3] != "0" && fields[3] != "1") {
		return dedupe.Record{}, dedupe.ErrCorrupt
	}
	r := dedupe.Record{Attempt: int(attempt), Doubted: fields[3] == "1", Left: duration(left)}
	switch fields[0] {
	case letterInFlight:
		r.State = dedupe.InFlight
	case letterInDoubt:
		r.State = dedupe.InDoubt
	case letterFailed:
		r.State = dedupe.Failed
		return r, nil
	default:
		return dedupe.Record{}, dedupe.ErrCorrupt
	}
	r.Token = fields[1]
	age := max(0, int64(ttl)-left)
	r.LeaseLeft = duration(max(0, int64(lease)-age))
	return r, nil
}

// split takes the fields of a value apart.
func split(value string) (fields [6]string, ok bool) {
	for i := range fields {
		var more bool
		fields[i], value, more = strings.Cut(value, ":")
		if more != (i < len(fields)-1) {
			return fields, false
		}
	}
	return fields, true
}

// decodeMark reads a done event: the mark in the one way it is written.
func decodeMark(value string) (uint16, bool) {
	if value == "" || value[0] > '9' {
		return 0, false // without the error that ParseUint would make
	}
	mark, err := strconv.ParseUint(value, 10, 16)
	if err != nil || mark > dedupe.MaxMark || value != encodeMark(uint16(mark)) {
		return 0, false
	}
	return uint16(mark), true
}

func encodeMark(mark uint16) string { return strconv.FormatUint(uint64(mark), 10) }

// milliseconds is d for Redis, which takes no time to live of 0.
func milliseconds(d time.Duration) int64 { return max(1, d.Milliseconds()) }

func millis(d time.Duration) string { return strconv.FormatInt(milliseconds(d), 10) }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
