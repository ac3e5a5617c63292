package verify

import (
	"errors"
	"fmt"
	"strings"
)

// The parts that a payload template may name.
const (
	partLiteral = ""
	partBody    = "body"
	partTime    = "timestamp"
	partID      = "id"
	partURL     = "url"
	partMethod  = "method"
)

// payload is a parsed template of the signed bytes.
type payload []segment

// segment is one part of a template; text belongs to partLiteral.
type segment struct{ part, text string }

// caddySpelling undoes what Caddy's Caddyfile adapter does to placeholders: it
// writes out {method}. {body} has a long form too, which people may write.
var caddySpelling = map[string]string{
	"http.request.method": partMethod,
	"http.request.body":   partBody,
}

// parsePayload parses a template. There is no escape: braces always enclose the
// name of a part.
func parsePayload(template string) (payload, error) {
	var p payload
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return nil, errors.New("a } without its {")
		}
		if literal != "" {
			p = append(p, segment{partLiteral, literal})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, errors.New("a { without its }")
		}
		if short, ok := caddySpelling[name]; ok {
			name = short
		}
		switch name {
		case partBody, partTime, partID, partURL, partMethod:
			p = append(p, segment{part: name})
		default:
			return nil, fmt.Errorf("unknown placeholder {%s}; there are {body} {timestamp} {id} {url} {method}", name)
		}
		rest = tail
	}
	if !p.has(partBody) {
		return nil, errors.New("it leaves out {body}, so any body would pass")
	}
	return p, nil
}

func (p payload) has(part string) bool {
	for _, s := range p {
		if s.part == part {
			return true
		}
	}
	return false
}

// parts are the values of one request that a template is filled with. The URL
// comes in two pieces so that it need not be put together.
type parts struct {
	body             []byte
	timestamp, id    string
	urlHead, urlTail string
	method           string
}

// byteSink takes the signed bytes piece by piece.
type byteSink interface {
	Write([]byte) (int, error)
	writeString(string)
}

// bytes returns the signed bytes.
func (p payload) bytes(v *parts) []byte {
	b := make(buffer, 0, len(v.body)+len(v.urlHead)+len(v.urlTail)+128)
	p.writeTo(&b, v)
	return b
}

// buffer is a byteSink that keeps what it takes.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }
func (b *buffer) writeString(s string)        { *b = append(*b, s...) }

// writeTo writes the signed bytes.
func (p payload) writeTo(w byteSink, v *parts) {
	for i := range p {
		switch p[i].part {
		case partLiteral:
			w.writeString(p[i].text)
		case partBody:
			w.Write(v.body)
		case partTime:
			w.writeString(v.timestamp)
		case partID:
			w.writeString(v.id)
		case partURL:
			w.writeString(v.urlHead)
			w.writeString(v.urlTail)
		case partMethod:
			w.writeString(v.method)
		}
	}
}
