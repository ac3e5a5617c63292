package filestore

import (
	"bytes"
	"testing"
)

// FuzzHeader: a header is read as it was written, a changed byte is noticed, and
// what is read from any bytes is what they say.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(magic), uint64(1), int64(1767225600000), uint64(64), 0)
	f.Add(header{seq: 1}.append(nil), uint64(0), int64(-1), uint64(0), 63)
	f.Fuzz(func(t *testing.T, data []byte, seq uint64, created int64, prev uint64, at int) {
		if h, err := parseHeader(data); err == nil && !bytes.Equal(h.append(nil), data[:headerSize]) {
			t.Error("it is read as another header")
		}
		h := header{seq: seq, created: created, prev: prev}
		copy(h.seed[:], data)
		written := h.append(nil)
		if got, err := parseHeader(written); err != nil || got != h {
			t.Fatalf("%+v is read as %+v, %v", h, got, err)
		}
		written[uint(at)%headerSize] ^= 1
		if _, err := parseHeader(written); err == nil {
			t.Error("a changed byte goes unnoticed")
		}
	})
}

// FuzzSegmentName: only the exact name of a segment is one.
func FuzzSegmentName(f *testing.F) {
	f.Add("0000000001.log")
	f.Add("1.log")
	f.Add("+000000001.log")
	f.Add("18446744073709551616.log")
	f.Fuzz(func(t *testing.T, name string) {
		if seq, ok := segmentSeq(name); ok && segmentName(seq) != name {
			t.Errorf("%q is taken for segment %d", name, seq)
		}
	})
}
