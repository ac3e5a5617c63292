package caddymodule

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/filestore"
)

// spool keeps finished events that the store does not know of yet in a file, one
// JSON object a line, so that they outlive this process. Several processes may
// use the same data directory: each takes a slot of its own, and with it what a
// dead process left there.
type spool struct {
	slots []slot
	file  *os.File // of the first slot; nil until something is kept
}

// slot is a directory that belongs to one process at a time.
type slot struct {
	dir  string
	lock io.Closer
}

// maxSlots bounds the processes that share a data directory.
const maxSlots = 16

// spooled is a line of the file.
type spooled struct {
	Key  string        `json:"key"`
	Mark uint16        `json:"mark"`
	TTL  time.Duration `json:"ttl_ns"`
	At   time.Time     `json:"at"`
}

// openSpool takes all free slots for the store of this identity below dir.
func openSpool(dir, identity string) (*spool, error) {
	sum := sha256.Sum256([]byte(identity))
	s := new(spool)
	for n := range maxSlots {
		sl := slot{dir: filepath.Join(dir, fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:8]), n))}
		if _, err := os.Stat(sl.dir); len(s.slots) > 0 && errors.Is(err, os.ErrNotExist) {
			break
		}
		if err := os.MkdirAll(sl.dir, 0o700); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		var err error
		if sl.lock, err = filestore.Lock(sl.dir); err == nil {
			s.slots = append(s.slots, sl)
		} else if !errors.Is(err, filestore.ErrLocked) {
			return nil, errors.Join(err, s.Close())
		}
	}
	if len(s.slots) == 0 {
		return nil, fmt.Errorf("%d processes spool to %s already", maxSlots, dir)
	}
	return s, nil
}

func (sl slot) path() string { return filepath.Join(sl.dir, "completions.jsonl") }

// Keep implements [dedupe.Spool].
func (s *spool) Keep(c dedupe.Completion) error {
	line, err := json.Marshal(spooled{c.Key, c.Done.Mark, c.Done.TTL, c.At})
	if err != nil {
		return err
	}
	if s.file == nil {
		if s.file, err = os.OpenFile(s.slots[0].path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
			return err
		}
		line = append([]byte{'\n'}, line...) // the last line may have been cut off
	}
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// Load implements [dedupe.Spool]. What it returns stays in its files until Clear:
// kept again, it stands there twice, which does no harm.
func (s *spool) Load() ([]dedupe.Completion, error) {
	var all []dedupe.Completion
	var failures error
	for _, sl := range s.slots {
		completions, err := sl.load()
		all = append(all, completions...)
		failures = errors.Join(failures, err)
	}
	return all, failures
}

func (sl slot) load() ([]dedupe.Completion, error) {
	data, err := os.ReadFile(sl.path())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return parseSpool(data), err
}

func parseSpool(data []byte) (all []dedupe.Completion) {
	for line := range bytes.Lines(data) {
		var c spooled
		if json.Unmarshal(line, &c) == nil && c.Key != "" { // the process may have died while it wrote
			all = append(all, dedupe.Completion{Key: c.Key, Done: dedupe.Done{Mark: c.Mark, TTL: c.TTL}, At: c.At})
		}
	}
	return all
}

// Clear implements [dedupe.Spool].
func (s *spool) Clear() error {
	var failures error
	if s.file != nil {
		failures = s.file.Close()
		s.file = nil
	}
	for _, sl := range s.slots {
		if err := os.Remove(sl.path()); !errors.Is(err, os.ErrNotExist) {
			failures = errors.Join(failures, err)
		}
	}
	return failures
}

// Close implements [dedupe.Spool].
func (s *spool) Close() error {
	var failures error
	if s.file != nil {
		failures = s.file.Close()
		s.file = nil
	}
	for _, sl := range s.slots {
		failures = errors.Join(failures, sl.lock.Close())
	}
	return failures
}
