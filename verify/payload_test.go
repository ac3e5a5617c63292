package verify

import (
	"slices"
	"strings"
	"testing"
)

// text is a byteSink for tests.
type text struct{ strings.Builder }

func (t *text) writeString(s string) { t.WriteString(s) }

func TestTemplatesAreFilledInOrder(t *testing.T) {
	values := parts{body: []byte("B{id}"), timestamp: "1", id: "I", urlHead: "https://h", urlTail: "/u", method: "PUT"}
	for template, want := range map[string]string{
		"{body}":                                    "B{id}",
		"v0:{timestamp}:{body}":                     "v0:1:B{id}",
		"{method}{url}{body}{timestamp}":            "PUThttps://h/uB{id}1",
		"{id}.{timestamp}.{body}!":                  "I.1.B{id}!",
		"{body}{body}":                              "B{id}B{id}",
		"{http.request.method} {http.request.body}": "PUT B{id}",
		" \n{body}\r\n":                             " \nB{id}\r\n",
	} {
		p, err := parsePayload(template)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		var got text
		if p.writeTo(&got, &values); got.String() != want {
			t.Errorf("%s: got %q", template, got.String())
		}
	}
}

func TestTemplatesWithoutBodyOrWithSlipsAreRefused(t *testing.T) {
	for _, template := range []string{"", "body", "{timestamp}", "{Body}", "{body", "body}", "{body}}", "{{body}}", "{}{body}", "{ body }", "{body}{host}", "{http.request.uri}{body}", "{body}{sha256}"} {
		if p, err := parsePayload(template); err == nil {
			t.Errorf("%s: got %v", template, p)
		}
	}
}

func TestCaddysSpellingMakesNoDifference(t *testing.T) {
	short, _ := parsePayload("{method}{body}")
	long, _ := parsePayload("{http.request.method}{http.request.body}")
	if !slices.Equal(short, long) {
		t.Errorf("%v and %v", short, long)
	}
}
