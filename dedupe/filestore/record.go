package filestore

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// A record on disk is a frame: the length of its body (2 bytes), the CRC-32C of
// length and body (4 bytes), and the body. Numbers are little-endian. A body is
//
//	done     kind  hash[16] expires[6] mark[2]
//	held     kind  hash[16] expires[6] doubted[1] attempt[4] lease[4] token
//	binding  kind  hash[16] expires[6] value
//	synced   kind  time[6]
//
// where expires and time are Unix milliseconds, and lease is in milliseconds.
const (
	frameHead = 2 + 4
	bodyHead  = 1 + 16 + 6
	heldHead  = bodyHead + 1 + 4 + 4
	doneSize  = bodyHead + 2
	syncSize  = 1 + 6

	// maxName is the longest token or value.
	maxName = 32
	minBody = syncSize
	maxBody = heldHead + maxName
)

// kind is the first byte of a body. The values are on disk: never reuse one.
type kind uint8

const (
	kindDone kind = iota + 1
	kindInFlight
	kindInDoubt
	kindFailed
	kindBinding
	// kindSynced says that everything before it in its segment was synced. It
	// tells damage apart from what a power cut kept from the disk.
	kindSynced
)

// held returns the state of a held record, and Absent for the other kinds.
func (k kind) held() dedupe.State {
	switch k {
	case kindInFlight:
		return dedupe.InFlight
	case kindInDoubt:
		return dedupe.InDoubt
	case kindFailed:
		return dedupe.Failed
	}
	return dedupe.Absent
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort    = errors.New("the record is incomplete")
	errLength   = errors.New("the record has an impossible length")
	errChecksum = errors.New("the record does not match its checksum")
	errBody     = errors.New("the record is of an unknown kind, or malformed")
)

// record is a decoded body.
type record struct {
	kind    kind
	hash    hash
	expires int64  // or the time, of kindSynced
	event   entry  // of an event
	value   string // of a binding
}

// appendEvent appends the record that says that e is the state of h.
func appendEvent(buf []byte, h hash, e entry) []byte {
	start := len(buf)
	switch e.state {
	case dedupe.Completed:
		buf = beginRecord(buf, kindDone, h, e.expires)
		buf = binary.LittleEndian.AppendUint16(buf, e.mark)
		return sealFrame(buf, start)
	case dedupe.InFlight:
		buf = beginRecord(buf, kindInFlight, h, e.expires)
	case dedupe.InDoubt:
		buf = beginRecord(buf, kindInDoubt, h, e.expires)
	default:
		buf = beginRecord(buf, kindFailed, h, e.expires)
	}
	doubted := byte(0)
	if e.doubted {
		doubted = 1
	}
	buf = append(buf, doubted)
	buf = binary.LittleEndian.AppendUint32(buf, clampUint32(int64(e.attempt)))
	buf = binary.LittleEndian.AppendUint32(buf, clampUint32(milliseconds(e.lease)))
	buf = append(buf, e.token...)
	return sealFrame(buf, start)
}

// appendBinding appends the record that ties b's value to h.
func appendBinding(buf []byte, h hash, b binding) []byte {
	start := len(buf)
	buf = beginRecord(buf, kindBinding, h, b.expires)
	buf = append(buf, b.value...)
	return sealFrame(buf, start)
}

// appendSynced appends the mark that all before it is on disk at time now.
func appendSynced(buf []byte, now int64) []byte {
	start := len(buf)
	buf = append(buf, 0, 0, 0, 0, 0, 0, byte(kindSynced))
	buf = appendUint48(buf, now)
	return sealFrame(buf, start)
}

func beginRecord(buf []byte, k kind, h hash, expires int64) []byte {
	buf = append(buf, 0, 0, 0, 0, 0, 0, byte(k))
	buf = append(buf, h[:]...)
	return appendUint48(buf, expires)
}

// sealFrame fills in the head of the frame that begins at start.
func sealFrame(buf []byte, start int) []byte {
	frame := buf[start:]
	binary.LittleEndian.PutUint16(frame, uint16(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[2:], frameSum(frame))
	return buf
}

func frameSum(frame []byte) uint32 {
	sum := crc32.Update(0, castagnoli, frame[:2])
	return crc32.Update(sum, castagnoli, frame[frameHead:])
}

// nextFrame returns the body of the frame that data begins with.
func nextFrame(data []byte) ([]byte, error) {
	if len(data) < 2 {
		return nil, errShort
	}
	n := int(binary.LittleEndian.Uint16(data))
	switch {
	case n < minBody || n > maxBody:
		return nil, errLength
	case len(data) < frameHead+n:
		return nil, errShort
	case frameSum(data[:frameHead+n]) != binary.LittleEndian.Uint32(data[2:]):
		return nil, errChecksum
	}
	return data[frameHead : frameHead+n], nil
}

// decode reads the body of a frame whose checksum is right.
func decode(body []byte) (record, error) {
	k := kind(body[0])
	if k == kindSynced && len(body) == syncSize {
		return record{kind: k, expires: uint48(body[1:])}, nil
	}
	if len(body) < bodyHead {
		return record{}, errBody
	}
	r := record{kind: k, hash: hash(body[1:17]), expires: uint48(body[17:])}
	rest := body[bodyHead:]
	switch {
	case k == kindDone && len(body) == doneSize:
		r.event = entry{state: dedupe.Completed, mark: binary.LittleEndian.Uint16(rest), expires: r.expires}
	case k.held() != dedupe.Absent && len(body) >= heldHead && rest[0] <= 1:
		r.event = entry{
			state:   k.held(),
			doubted: rest[0] == 1,
			attempt: int(binary.LittleEndian.Uint32(rest[1:])),
			lease:   time.Duration(binary.LittleEndian.Uint32(rest[5:])) * time.Millisecond,
			token:   string(rest[9:]),
			expires: r.expires,
		}
	case k == kindBinding && len(rest) <= maxName:
		r.value = string(rest)
	default:
		return record{}, errBody
	}
	return r, nil
}

func appendUint48(buf []byte, v int64) []byte {
	return append(buf, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40))
}

func uint48(b []byte) int64 {
	return int64(binary.LittleEndian.Uint32(b)) | int64(binary.LittleEndian.Uint16(b[4:]))<<32
}

func clampUint32(v int64) uint32 {
	return uint32(max(0, min(v, math.MaxUint32)))
}

// milliseconds is d in milliseconds, rounded up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
