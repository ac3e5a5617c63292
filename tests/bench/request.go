package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
)

// secret is every sender's.
const secret = "whsec_a-secret-for-benchmarks-only"

// An event id has 40 characters: a salt, which is a run's own, and 16 digits.
const (
	saltSize = 24
	idSize   = saltSize + 16
)

// senders are the requests of the senders that the benchmark plays. In a head or
// a body, idMark stands for the event id, and timeMark and macMark for what the
// signature header holds.
var senders = map[string]struct {
	head, body string
	timed      bool // the signed bytes begin with a time, and a dot
}{
	// The id is in a header and not signed: one signature serves all requests.
	"github": {
		head: "X-GitHub-Event: push\r\nX-GitHub-Delivery: " + idMark + "\r\nX-Hub-Signature-256: sha256=" + macMark + "\r\n",
		body: `{"action":"created"`,
	},
	// The id is in the body.
	"paymos": {
		head:  "X-Webhook-Id: " + idMark + "\r\nX-Webhook-Signature: t=" + timeMark + ",v1=" + macMark + "\r\n",
		body:  `{"event_id":"` + idMark + `","event_type":"invoice.paid"`,
		timed: true,
	},
	// The id is in a header and not signed, but the time is: the replay guard is on.
	"stableops": {
		head:  "X-Event-Id: " + idMark + "\r\nX-Product-Signature: t=" + timeMark + ",v1=" + macMark + "\r\n",
		body:  `{"type":"payment.finalized","payment":"` + idMark + `"`,
		timed: true,
	},
}

// Marks of the length of what replaces them.
var (
	idMark   = strings.Repeat("#", idSize)
	timeMark = strings.Repeat("@", 10)
	macMark  = strings.Repeat("%", 2*sha256.Size)
)

// template is a request whose bytes are ready but for the event: its id is
// written into them in place, and the signature too where it covers anything
// that changes.
type template struct {
	bytes  []byte
	body   []byte
	ids    [][]byte
	time   []byte
	mac    []byte
	hasher hash.Hash
	sum    [sha256.Size]byte
	second int64
	fixed  bool // the signature is the same for all events
}

// newTemplate returns a request of a sender with a body of size bytes. extra are
// further header lines.
func newTemplate(sender string, size int, extra string) (*template, error) {
	s, ok := senders[sender]
	if !ok {
		return nil, fmt.Errorf("no sender %q", sender)
	}
	body := fill(s.body, size)
	if len(body) > max(size, 256) {
		return nil, fmt.Errorf("a body of %d bytes is too small", size)
	}
	head := "POST /webhooks HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n" + s.head + extra + "\r\n"
	t := &template{bytes: []byte(head + body), hasher: hmac.New(sha256.New, []byte(secret))}
	t.body = t.bytes[len(head):]
	t.ids = marked(t.bytes, idMark)
	t.mac = marked(t.bytes, macMark)[0]
	if s.timed {
		t.time = marked(t.bytes, timeMark)[0]
		return t, nil
	}
	t.fixed = true
	t.sign()
	return t, nil
}

// marked are the places of a mark.
func marked(b []byte, mark string) (places [][]byte) {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(mark))
		if i < 0 {
			return places
		}
		from += i + len(mark)
		places = append(places, b[from-len(mark):from])
	}
}

// fill makes a JSON object out of its beginning, with items such as an order has.
func fill(start string, size int) string {
	const item = `{"sku":"A-1001","quantity":2,"price":"10.00"}`
	var b strings.Builder
	b.WriteString(start + `,"items":[` + item)
	const padding = `],"note":""}`
	for b.Len()+len(item)+1+len(padding) <= size {
		b.WriteString("," + item)
	}
	pad := max(0, size-b.Len()-len(padding))
	return b.String() + `],"note":"` + strings.Repeat("x", pad) + `"}`
}

// event returns the request for event n of a salt. The next call overwrites it.
func (t *template) event(salt string, n uint64, now time.Time) []byte {
	for _, id := range t.ids {
		writeID(id, salt, n)
	}
	if t.fixed {
		return t.bytes
	}
	if second := now.Unix(); second != t.second {
		t.second = second
		strconv.AppendInt(t.time[:0], second, 10)
	}
	t.sign()
	return t.bytes
}

func (t *template) sign() {
	t.hasher.Reset()
	if t.time != nil {
		t.hasher.Write(t.time)
		t.hasher.Write([]byte{'.'})
	}
	t.hasher.Write(t.body)
	hex.Encode(t.mac, t.hasher.Sum(t.sum[:0]))
}

// writeID writes an event id over the idSize bytes of to.
func writeID(to []byte, salt string, n uint64) {
	copy(to[:saltSize], salt)
	for i := idSize - 1; i >= saltSize; i-- {
		to[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}

// idOf is the id that [template.event] writes.
func idOf(salt string, n uint64) string {
	var id [idSize]byte
	writeID(id[:], salt, n)
	return string(id[:])
}
