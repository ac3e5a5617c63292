package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

var testHash = hash{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// testEntries is an entry of each kind, with the extremes of its fields.
var testEntries = []entry{
	{state: dedupe.Completed, mark: dedupe.MaxMark, expires: 1_800_000_000_123},
	{state: dedupe.Completed, expires: 1<<48 - 1},
	{state: dedupe.InFlight, token: "t", attempt: 1, lease: time.Second, expires: 1},
	{state: dedupe.InFlight, token: strings.Repeat("x", maxName), attempt: 1<<32 - 1, doubted: true, lease: time.Hour, expires: 5},
	{state: dedupe.InDoubt, token: "t_-9", attempt: 7, doubted: true, lease: 1500 * time.Millisecond, expires: 6},
	{state: dedupe.Failed, attempt: 3, expires: 7},
	{state: dedupe.Failed, attempt: 3, doubted: true, expires: 7},
}

func TestRecordsReadAsTheyWereWritten(t *testing.T) {
	for _, e := range testEntries {
		body, err := nextFrame(appendEvent(nil, testHash, e))
		if err != nil {
			t.Fatal(e, err)
		}
		got, err := decode(body)
		if err != nil {
			t.Fatal(e, err)
		}
		if !reflect.DeepEqual(got.event, e) || got.hash != testHash || got.expires != e.expires {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
	for _, value := range []string{"", "v", strings.Repeat("v", maxName)} {
		body, err := nextFrame(appendBinding(nil, testHash, binding{value: value, expires: 9}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(body); err != nil || got.kind != kindBinding || got.value != value || got.expires != 9 {
			t.Errorf("binding %q: %+v %v", value, got, err)
		}
	}
	body, err := nextFrame(appendSynced(nil, 11))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decode(body); err != nil || got.kind != kindSynced || got.expires != 11 {
		t.Errorf("mark: %+v %v", got, err)
	}
}

func TestFieldsBeyondTheFormatAreClamped(t *testing.T) {
	e := entry{state: dedupe.InFlight, token: "t", attempt: 1 << 40, lease: 1000 * 24 * time.Hour, expires: 5}
	body, err := nextFrame(appendEvent(nil, testHash, e))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(body)
	if err != nil || got.event.attempt != 1<<32-1 || got.event.lease != (1<<32-1)*time.Millisecond {
		t.Errorf("got %+v %v", got.event, err)
	}
}

func TestLeaseIsRoundedUpToMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := milliseconds(d); got != want {
			t.Errorf("milliseconds(%d) = %d, want %d", d, got, want)
		}
	}
}

// TestEveryFlippedBitOfARecordIsNoticed flips each bit of each kind of record.
func TestEveryFlippedBitOfARecordIsNoticed(t *testing.T) {
	for _, e := range testEntries {
		good := appendEvent(nil, testHash, e)
		for i := range good {
			for bit := range 8 {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << bit
				if _, err := nextFrame(bad); err == nil {
					t.Errorf("%v: bit %d of byte %d flipped, and not noticed", e.state, bit, i)
				}
			}
		}
	}
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	done := appendEvent(nil, testHash, testEntries[0])[frameHead:]
	held := appendEvent(nil, testHash, testEntries[2])[frameHead:]
	for name, body := range map[string][]byte{
		"kind 0":                append([]byte{0}, done[1:]...),
		"a kind to come":        append([]byte{99}, done[1:]...),
		"done with a token":     append(bytes.Clone(done), 'x'),
		"done without a mark":   done[:bodyHead],
		"held without a lease":  held[:heldHead-1],
		"doubted is 2":          append(append(bytes.Clone(held[:bodyHead]), 2), held[bodyHead+1:]...),
		"binding is too long":   append(append([]byte{byte(kindBinding)}, done[1:bodyHead]...), make([]byte, maxName+1)...),
		"mark is too long":      append(append([]byte{byte(kindSynced)}, done[1:bodyHead]...), 1),
		"event without a hash":  done[:7],
		"held, cut in the hash": held[:16],
	} {
		if r, err := decode(body); !errors.Is(err, errBody) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

// FuzzReplay feeds a segment's records to the decoder: it must never panic,
// never read past the end, and never accept what it would not write.
func FuzzReplay(f *testing.F) {
	var all []byte
	for _, e := range testEntries {
		all = appendEvent(all, testHash, e)
		f.Add(appendEvent(nil, testHash, e))
	}
	all = appendBinding(all, testHash, binding{value: "v", expires: 9})
	f.Add(appendSynced(all, 10))
	f.Add(all[:len(all)-3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, records []byte) {
		x := newIndex()
		r := &replay{index: &x}
		g := &segment{}
		data := append(make([]byte, headerSize), records...)
		at, err := r.apply(g, data)
		if at > len(data) || (err == nil) != (at == len(data)) {
			t.Fatalf("stopped at %d of %d: %v", at, len(data), err)
		}
		if next, _ := following(data, at); err != nil && next >= 0 && next <= at {
			t.Fatalf("what follows %d is at %d", at, next)
		}
		sealed := sealBody(records)
		if body, err := nextFrame(sealed); err == nil {
			checkDecoded(t, body)
		}
	})
}

// sealBody makes any bytes a body with the right checksum.
func sealBody(body []byte) []byte {
	return sealFrame(append(make([]byte, frameHead), body[:min(len(body), maxBody)]...), 0)
}

func checkDecoded(t *testing.T, body []byte) {
	t.Helper()
	r, err := decode(body)
	if err != nil {
		return
	}
	var again []byte
	switch r.kind {
	case kindSynced:
		again = appendSynced(nil, r.expires)
	case kindBinding:
		again = appendBinding(nil, r.hash, binding{value: r.value, expires: r.expires})
	default:
		again = appendEvent(nil, r.hash, r.event)
	}
	if !bytes.Equal(again[frameHead:], body) {
		t.Fatalf("%x decodes to %+v, which is written %x", body, r, again[frameHead:])
	}
}

func TestHeadersReadAsTheyWereWritten(t *testing.T) {
	h := header{seq: 7, created: 1_800_000_000_000, prev: 99, seed: [seedSize]byte{1, 2, 3}}
	data := h.append(nil)
	if got, err := parseHeader(data); err != nil || got != h {
		t.Fatalf("got %+v %v", got, err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if _, err := parseHeader(bad); err == nil {
			t.Errorf("byte %d changed, and not noticed", i)
		}
		if _, err := parseHeader(data[:i]); !errors.Is(err, errShort) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func TestSegmentOfANewerVersionIsRefused(t *testing.T) {
	data := header{seq: 1}.append(nil)
	binary.LittleEndian.PutUint32(data[8:], version+1)
	resealHeader(data)
	if _, err := parseHeader(data); !errors.Is(err, errVersion) {
		t.Errorf("got %v", err)
	}
}

func TestOnlySegmentNamesAreSegments(t *testing.T) {
	for name, want := range map[string]bool{
		"0000000001.log": true, "4294967296.log": true, "12345678901.log": true,
		"1.log": false, "0000000001.log.tmp": false, "000000000x.log": false,
		"lock": false, ".log": false, "+000000001.log": false, "0000000001": false,
	} {
		if _, ok := segmentSeq(name); ok != want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// TestRecordsOnDiskStayReadable: directories outlive versions, so that what is
// written now is what was written always.
func TestRecordsOnDiskStayReadable(t *testing.T) {
	h := hash{0: 1, 15: 16}
	const expires = 1_800_000_000_123
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"header": {header{seq: 2, created: expires, prev: 3, seed: [seedSize]byte{9}}.append(nil), "77686465647570650100000002000000000000007b505c18a3010000030000000000000009000000000000000000000000000000bf7466b0"},
		"done":   {appendEvent(nil, h, entry{state: dedupe.Completed, mark: 777, expires: expires}), "19008bb0293701010000000000000000000000000000107b505c18a3010903"},
		"in flight": {appendEvent(nil, h, entry{
			state: dedupe.InFlight, token: "tok-1", attempt: 3, doubted: true, lease: 30 * time.Second, expires: expires,
		}), "2500e0103aea02010000000000000000000000000000107b505c18a301010300000030750000746f6b2d31"},
		"in doubt": {appendEvent(nil, h, entry{state: dedupe.InDoubt, token: "t", attempt: 1, doubted: true, lease: time.Second, expires: expires}), "21004814293c03010000000000000000000000000000107b505c18a3010101000000e803000074"},
		"failed":   {appendEvent(nil, h, entry{state: dedupe.Failed, attempt: 2, expires: expires}), "20000c45857704010000000000000000000000000000107b505c18a301000200000000000000"},
		"binding":  {appendBinding(nil, h, binding{value: "value", expires: expires}), "1c009d8ba02105010000000000000000000000000000107b505c18a30176616c7565"},
		"synced":   {appendSynced(nil, expires), "0700f952c56b067b505c18a301"},
	} {
		if got := fmt.Sprintf("%x", c.got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
