package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// A segment begins with a header: magic[8] version[4] seq[8] created[8] prev[8]
// seed[16] and the CRC-32C of all that.
const (
	magic      = "whdedupe"
	version    = 1
	headerSize = 8 + 4 + 8 + 8 + 8 + seedSize + 4

	segmentSuffix = ".log"
	draftSuffix   = ".tmp"
)

// header is what a segment says of itself.
type header struct {
	seq     uint64 // segments are replayed in this order
	created int64  // Unix milliseconds
	// prev is the length of the segment with the number before, as it was when
	// this one took over. What that one holds beyond it is void.
	prev uint64
	seed [seedSize]byte
}

var (
	errMagic   = errors.New("this is not a segment of a webhook_dedupe store")
	errVersion = errors.New("the segment was written by a newer version")
	errHeader  = errors.New("the header does not match its checksum")
)

func (h header) append(buf []byte) []byte {
	start := len(buf)
	buf = append(buf, magic...)
	buf = binary.LittleEndian.AppendUint32(buf, version)
	buf = binary.LittleEndian.AppendUint64(buf, h.seq)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(h.created))
	buf = binary.LittleEndian.AppendUint64(buf, h.prev)
	buf = append(buf, h.seed[:]...)
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf[start:], castagnoli))
}

func parseHeader(data []byte) (header, error) {
	if len(data) < headerSize {
		return header{}, errShort
	}
	data = data[:headerSize]
	sum := binary.LittleEndian.Uint32(data[headerSize-4:])
	switch {
	case string(data[:8]) != magic:
		return header{}, errMagic
	case crc32.Checksum(data[:headerSize-4], castagnoli) != sum:
		return header{}, errHeader
	case binary.LittleEndian.Uint32(data[8:]) != version:
		return header{}, errVersion
	}
	return header{
		seq:     binary.LittleEndian.Uint64(data[12:]),
		created: int64(binary.LittleEndian.Uint64(data[20:])),
		prev:    binary.LittleEndian.Uint64(data[28:]),
		seed:    [seedSize]byte(data[36:]),
	}, nil
}

// segment is one file of the log.
type segment struct {
	seq        uint64
	created    int64
	size       int64 // how much of it is written; past it there may be leftovers
	synced     int64 // how much of that is known to be on disk
	lastExpiry int64 // when the last of its records expires
	file       file  // nil unless it is the one being written
}

func segmentName(seq uint64) string { return fmt.Sprintf("%010d%s", seq, segmentSuffix) }

// segmentSeq returns the number in a segment's name, and false for other files.
func segmentSeq(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, err == nil && segmentName(seq) == name
}

// draft writes a new segment under a name that replay does not see, and syncs
// it. A failure has no consequences.
func draft(d disk, h header, body []byte) (*segment, error) {
	name := segmentName(h.seq) + draftSuffix
	f, err := d.create(name)
	if err != nil {
		return nil, err
	}
	data := append(h.append(nil), body...)
	err = writeAll(f, data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		d.remove(name) // it is removed at the next opening otherwise
		return nil, err
	}
	return &segment{
		seq: h.seq, created: h.created,
		size: int64(len(data)), synced: int64(len(data)),
	}, nil
}

// publish gives a drafted segment its name and opens it for writing. After a
// failure nobody knows which name it has: nothing may be written to its
// predecessor any more.
func (g *segment) publish(d disk) error {
	name := segmentName(g.seq)
	if err := d.rename(name+draftSuffix, name); err != nil {
		return err
	}
	if err := d.sync(); err != nil {
		return err
	}
	f, err := d.open(name)
	g.file = f
	return err
}
