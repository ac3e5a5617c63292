package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// replay reads the directory into an index.
type replay struct {
	disk  disk
	log   *slog.Logger
	index *index
	now   instant

	seed   [seedSize]byte
	seeded bool
	latest int64 // the latest time that the log knows of
}

// clockSlack is how far back the clock may go unmentioned.
const clockSlack = time.Minute

// run replays all segments and returns them, oldest first.
func (r *replay) run() ([]*segment, error) {
	seqs, err := r.list()
	if err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	var segments []*segment
	for i, seq := range seqs {
		g, err := r.segment(seq, seqs[i+1:])
		if err != nil {
			return nil, err
		}
		segments = append(segments, g)
	}
	if back := time.Duration(r.latest-r.now.wall) * time.Millisecond; back > clockSlack {
		r.log.Warn("the clock is behind the times in the store; events are remembered longer", "by", back)
	}
	return segments, nil
}

// list returns the numbers of the segments in order. It clears away what was
// never part of the log: drafts, and a last segment without a whole header.
func (r *replay) list() ([]uint64, error) {
	names, err := r.disk.list()
	if err != nil {
		return nil, err
	}
	var seqs []uint64
	for _, name := range names {
		if strings.HasSuffix(name, segmentSuffix+draftSuffix) {
			if err := r.disk.remove(name); err != nil {
				return nil, err
			}
		}
		if seq, ok := segmentSeq(name); ok {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	if len(seqs) == 0 {
		return nil, nil
	}
	last := segmentName(seqs[len(seqs)-1])
	head, err := r.disk.head(last, make([]byte, headerSize))
	if err == nil && len(head) < headerSize {
		r.log.Warn("removing a segment that ends within its header",
			"file", r.disk.path(last), "bytes", len(head))
		seqs, err = seqs[:len(seqs)-1], r.disk.remove(last)
	}
	return seqs, err
}

// segment replays one segment; later are the numbers of those after it.
func (r *replay) segment(seq uint64, later []uint64) (*segment, error) {
	name := segmentName(seq)
	data, err := r.disk.read(name)
	if err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	h, err := r.header(seq, data)
	if err != nil {
		return nil, err
	}
	if len(later) > 0 && later[0] == seq+1 {
		if data, err = r.limit(seq, data, later[0]); err != nil {
			return nil, err
		}
	}
	g := &segment{seq: seq, created: h.created}
	size, cause := r.apply(g, data)
	if cause != nil {
		if len(later) > 0 || errors.Is(cause, errBody) {
			return nil, r.damage(seq, size, cause.Error())
		}
		if err := r.cut(seq, data, size, cause); err != nil {
			return nil, err
		}
	}
	g.size, g.synced = int64(size), int64(size)
	return g, nil
}

func (r *replay) header(seq uint64, data []byte) (header, error) {
	h, err := parseHeader(data)
	switch {
	case err != nil:
		return h, r.damage(seq, 0, err.Error())
	case h.seq != seq:
		return h, r.damage(seq, 0, fmt.Sprintf("this is segment %d under another name", h.seq))
	case r.seeded && h.seed != r.seed:
		return h, r.damage(seq, 0, "the segment belongs to another directory")
	}
	r.seed, r.seeded = h.seed, true
	r.latest = max(r.latest, h.created)
	return h, nil
}

// limit returns the part of a segment's data that its successor lets stand.
func (r *replay) limit(seq uint64, data []byte, next uint64) ([]byte, error) {
	head, err := r.disk.head(segmentName(next), make([]byte, headerSize))
	if err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	h, err := parseHeader(head)
	if err != nil {
		return nil, r.damage(next, 0, err.Error())
	}
	if h.prev > uint64(len(data)) {
		return nil, r.damage(seq, len(data), fmt.Sprintf("the file is shorter than the %d bytes it was closed with", h.prev))
	}
	return data[:h.prev], nil
}

// apply takes over the records of a segment up to the first bad one, and
// returns where that is, and what is bad about it.
func (r *replay) apply(g *segment, data []byte) (int, error) {
	at := headerSize
	for at < len(data) {
		body, err := nextFrame(data[at:])
		if err != nil {
			return at, err
		}
		rec, err := decode(body)
		if err != nil {
			return at, err
		}
		if rec.kind == kindSynced {
			r.latest = max(r.latest, rec.expires)
		} else {
			g.lastExpiry = max(g.lastExpiry, rec.expires)
		}
		r.index.apply(rec, r.now)
		at += frameHead + len(body)
	}
	return at, nil
}

// cut cuts the last segment off at a bad record, if a write that was cut short
// can be the reason: nothing valid follows; or what follows was never synced,
// and there is a block in between that the disk never received.
func (r *replay) cut(seq uint64, data []byte, at int, cause error) error {
	next, synced := following(data, at)
	switch {
	case synced:
		return r.damage(seq, at, cause.Error()+", and what follows it was on the disk already")
	case next >= 0 && !hasHole(data[at:next]):
		return r.damage(seq, at, cause.Error()+", and valid records follow it")
	}
	name := segmentName(seq)
	r.log.Warn("cutting off the end of the log, which was not written in full",
		"file", r.disk.path(name), "offset", at, "bytes", len(data)-at, "reason", cause)
	if err := r.disk.truncate(name, int64(at)); err != nil {
		return fmt.Errorf("filestore: %w", err)
	}
	return nil
}

// following looks for valid records after the bad one at the given place. It
// returns where the first one is, or -1, and whether any says that it was synced.
func following(data []byte, at int) (next int, synced bool) {
	next = -1
	for at++; at < len(data); at++ {
		body, err := nextFrame(data[at:])
		if err != nil {
			continue
		}
		if next < 0 {
			next = at
		}
		if kind(body[0]) == kindSynced {
			return next, true
		}
		at += frameHead + len(body) - 1
	}
	return next, false
}

// hasHole reports whether gap holds the zeros that stand for a block which never
// reached the disk.
func hasHole(gap []byte) bool {
	return bytes.Contains(gap, make([]byte, 256))
}

func (r *replay) damage(seq uint64, at int, reason string) error {
	return &DamageError{File: r.disk.path(segmentName(seq)), Offset: int64(at), Reason: reason}
}
