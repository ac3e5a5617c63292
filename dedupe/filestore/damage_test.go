package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// TestAnyDamagedByteBeforeTheLastRecordIsRefused damages a log that was closed
// in good order, and one whose process was killed.
func TestAnyDamagedByteBeforeTheLastRecordIsRefused(t *testing.T) {
	for _, closed := range []bool{true, false} {
		f := newFixture(t)
		states := smallLog(f)
		last := states[len(states)-2].end // where the last record begins
		if closed {
			f.close()
			last = states[len(states)-1].end // the mark of the sync
		} else {
			f.kill()
		}
		name := f.lastSegment()
		whole := readFile(t, name)
		for i := range last {
			bad := bytes.Clone(whole)
			bad[i] ^= 0x10
			writeFile(t, name, bad)
			s, err := f.tryOpen()
			var damage *DamageError
			if !errors.As(err, &damage) {
				if err == nil {
					s.Close()
				}
				t.Fatalf("closed %v: byte %d is damaged: %v, want a DamageError", closed, i, err)
			}
			if damage.File != name || damage.Offset > i || damage.Offset < i-maxBody-frameHead {
				t.Errorf("byte %d is damaged, and the error names %s, %d", i, damage.File, damage.Offset)
			}
			if !bytes.Equal(readFile(t, name), bad) {
				t.Fatal("a refused log was changed")
			}
		}
		writeFile(t, name, whole)
		f.open()
	}
}

func TestDamageErrorSaysWhereAndWhatToDo(t *testing.T) {
	err := &DamageError{File: "/var/lib/x/0000000003.log", Offset: 1234, Reason: "it is bad"}
	for _, want := range []string{"/var/lib/x/0000000003.log", "1234", "it is bad", "move it out"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

// twoSegments makes a log of two segments, and returns their names.
func twoSegments(f *fixture) (string, string) {
	f.t.Helper()
	smallLog(f)
	f.onWriter(f.rotate)
	f.complete("s:2")
	f.close()
	names := f.segmentFiles()
	if len(names) != 2 {
		f.t.Fatalf("there are %d segments", len(names))
	}
	return names[0], names[1]
}

func TestDamageInAnOlderSegmentIsRefusedUpToItsEnd(t *testing.T) {
	f := newFixture(t)
	older, _ := twoSegments(f)
	whole := readFile(t, older)
	refused := func(what string, data []byte) (damage *DamageError) {
		t.Helper()
		writeFile(t, older, data)
		if s, err := f.tryOpen(); !errors.As(err, &damage) {
			if err == nil {
				s.Close()
			}
			t.Errorf("%s: %v", what, err)
		} else if damage.File != older {
			t.Errorf("%s: the error names %s", what, damage.File)
		}
		return damage
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		refused("a damaged byte", bad)
		damage := refused("a shorter file", whole[:i])
		if damage != nil && i >= headerSize && (damage.Offset != int64(i) || !strings.Contains(damage.Reason, "shorter")) {
			t.Errorf("a file cut to %d bytes: %v, want it known as cut", i, damage)
		}
	}
	writeFile(t, older, whole)
	f.open()
	f.want("s:1", dedupe.Completed)
	f.want("s:2", dedupe.Completed)
}

func TestWhatASuccessorDeclaredVoidIsIgnored(t *testing.T) {
	f := newFixture(t)
	older, _ := twoSegments(f)
	void := appendEvent(nil, hashKey(f.seed, "s:8"), entry{state: dedupe.Completed, expires: 1<<48 - 1})
	writeFile(t, older, append(append(readFile(t, older), void...), "and half a reco"...))
	f.open()
	f.want("s:8", dedupe.Absent)
	f.want("s:1", dedupe.Completed)
}

func TestDirectoryGoesOnWithoutASegmentThatWasMovedAway(t *testing.T) {
	f := newFixture(t)
	older, newer := twoSegments(f)
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.Rename(older, aside); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.want("s:1", dedupe.Absent)
	f.want("s:2", dedupe.Completed)
	f.close()
	if err := errors.Join(os.Rename(aside, older), os.Remove(newer)); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.want("s:1", dedupe.Completed)
	f.want("s:2", dedupe.Failed)
}

// holed returns a log whose middle never reached the disk, with valid records
// behind.
func holed(f *fixture) []byte {
	f.complete("s:0")
	start := f.Stats().Bytes
	for i := range 40 {
		f.claim("h:"+string(rune('a'+i)), "t")
	}
	end := f.Stats().Bytes
	f.complete("s:1")
	f.kill()
	data := readFile(f.t, f.lastSegment())
	clear(data[start+7 : end-5])
	return data
}

func TestHoleOfAPowerCutIsCutOff(t *testing.T) {
	f := newFixture(t)
	writeFile(t, f.lastSegment(), holed(f))
	f.open()
	f.want("s:0", dedupe.Completed)
	f.want("s:1", dedupe.Absent)
	if !strings.Contains(f.logs.String(), "cutting off") {
		t.Errorf("the log says %q", f.logs)
	}
}

func TestHoleInWhatWasSyncedIsRefused(t *testing.T) {
	f := newFixture(t)
	data := appendSynced(holed(f), f.clock.now().UnixMilli())
	name := f.lastSegment()
	writeFile(t, name, data)
	var damage *DamageError
	if _, err := f.tryOpen(); !errors.As(err, &damage) || !strings.Contains(err.Error(), "on the disk already") {
		t.Errorf("got %v", err)
	}
	os.Remove(name)
	f.open()
}

func TestUnknownKindOfRecordIsRefused(t *testing.T) {
	f := newFixture(t)
	f.complete("s:1")
	f.kill()
	name := f.lastSegment()
	whole := readFile(t, name)
	body := append([]byte{200}, make([]byte, 30)...)
	writeFile(t, name, append(bytes.Clone(whole), sealBody(body)...))
	var damage *DamageError
	if _, err := f.tryOpen(); !errors.As(err, &damage) || damage.Offset != int64(len(whole)) {
		t.Errorf("got %v", err)
	}
	writeFile(t, name, whole)
	f.open()
}

// resealHeader makes a changed header's checksum right.
func resealHeader(data []byte) {
	binary.LittleEndian.PutUint32(data[headerSize-4:], crc32.Checksum(data[:headerSize-4], castagnoli))
}

func TestForeignSegmentsAreRefused(t *testing.T) {
	f := newFixture(t)
	_, newer := twoSegments(f)
	whole := readFile(t, newer)
	for reason, change := range map[string]func(data []byte){
		"another directory": func(data []byte) { data[36]++ },
		"another name":      func(data []byte) { data[12]++ },
		"newer version":     func(data []byte) { data[8]++ },
		"not a segment":     func(data []byte) { data[0]++ },
	} {
		bad := bytes.Clone(whole)
		change(bad)
		resealHeader(bad)
		writeFile(t, newer, bad)
		if _, err := f.tryOpen(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	writeFile(t, newer, whole)
	f.open()
}
