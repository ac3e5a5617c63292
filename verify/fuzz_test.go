package verify

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Every header must be refused or hold the right signature; none may panic or
// go over a bound.
func FuzzSignatureHeader(f *testing.F) {
	mac := sign(testSecret, "1767225600.{}")
	for _, s := range []string{
		"t=1767225600,v1=" + mac, "t=1767225600, v1=" + strings.ToUpper(mac), "v1=" + mac + ",t=1767225600", "t=1,t=2,v1=" + mac,
		"t=1767225600,v1=potato,v0=" + mac, ",,=,v1", "t=,v1=", "", "t=1767225600;v1=" + mac,
	} {
		f.Add(s, "")
		f.Add(s, s)
	}
	v := preset(f, "paymos", testSecret)
	f.Fuzz(func(t *testing.T, one, two string) {
		h := http.Header{"X-Webhook-Signature": {one, two}}
		var found signatures
		v.schemes[0].collect(h, &found)
		if found.n > maxCandidates || found.items > maxItems {
			t.Errorf("%d candidates, %d items", found.n, found.items)
		}
		_, err := v.Verify(&Request{Header: h, Body: []byte("{}")}, noon)
		if err != nil && Reason(err) == "" {
			t.Errorf("no reason: %v", err)
		}
		if err == nil && !strings.Contains(strings.ToLower(one+" "+two), mac) {
			t.Errorf("accepted %q %q", one, two)
		}
	})
}

func FuzzDigest(f *testing.F) {
	raw := bytes.Repeat([]byte{0xfb, 0xff, 0, 7}, 5)
	for _, enc := range encodings {
		f.Add(encodeDigest(enc, raw))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, enc := range encodings {
			dst := make([]byte, 20)
			if !decodeDigest(enc, dst, s) {
				continue
			}
			again := encodeDigest(enc, dst)
			if name == Hex {
				s = strings.ToLower(s)
			}
			if name == Base64URL {
				s = strings.TrimSuffix(s, "=")
			}
			if again != s {
				t.Errorf("%s: %q is a second spelling of %q", name, s, again)
			}
		}
	})
}

// membersAt returns every value at the path, by encoding/json.
func membersAt(t *testing.T, doc []byte, path []string) (found []json.RawMessage) {
	if len(path) == 0 {
		return []json.RawMessage{doc}
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if key == path[0] {
			found = append(found, membersAt(t, value, path[1:])...)
		}
	}
	return found
}

func FuzzJSONID(f *testing.F) {
	for _, doc := range []string{
		`{"id":"a","data":{"id":1}}`, ` { "x" : [1,{"id":2}], "\u0069d" : -12 } `, `{"id":"A","\u0069d":"B"}`, `{"id":"\ud83e\uddfe\n"}`,
		`{"id":"\ud83e"}`, `[{"id":1}]`, `{"id":null}`, `{"data":{"id":{"id":"x"}}}`, `{"id":"]}\"","x":"\\"}`, `{"id":1e3}`, "{\"id\":\"\xff\"}", "",
	} {
		f.Add([]byte(doc), "id")
		f.Add([]byte(doc), "data.id")
	}
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		names, err := parseSinglePath(path)
		if err != nil {
			return
		}
		value, err := findJSON(doc, names)
		if err != nil {
			if Reason(err) == "" {
				t.Fatalf("no reason: %v", err)
			}
			if json.Valid(doc) && utf8.Valid(doc) && !strings.Contains(path, "\uFFFD") && len(membersAt(t, doc, names)) == 1 && Reason(err) != ErrAmbiguousID.Reason {
				t.Fatalf("missed %s in %q: %v", path, doc, err)
			}
			return
		}
		if !utf8.Valid(doc) || !utf8.ValidString(path) || strings.Contains(path, "\uFFFD") {
			return // encoding/json replaces what is no UTF-8
		}
		all := membersAt(t, doc, names)
		if len(all) != 1 || !bytes.Equal(bytes.TrimSpace(all[0]), value) && len(names) > 0 {
			t.Fatalf("%s in %q: got %q, encoding/json has %q", path, doc, value, all)
		}
		checkID(t, value)
	})
}

// checkID compares the text of an id with what encoding/json makes of it.
func checkID(t *testing.T, value []byte) {
	text, key, err := jsonID(value)
	if err != nil {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	switch want := want.(type) {
	case string:
		if text != want || strings.TrimPrefix(key, `"`) != strings.TrimPrefix(text, `"`) && key != `"`+text {
			t.Fatalf("%q: text %q, key %q, want %q", value, text, key, want)
		}
		if _, number, err := jsonID([]byte(want)); err == nil && number == key && json.Valid([]byte(want)) {
			t.Fatalf("%q has the key of a number", value)
		}
	case json.Number:
		if text != want.String() || key != text {
			t.Fatalf("%q: text %q, key %q", value, text, key)
		}
	default:
		t.Fatalf("%q became the id %q", value, text)
	}
}

// membersOfEach returns every value at the path in the only array there is at
// names, by encoding/json, and whether there is such an array.
func membersOfEach(t *testing.T, doc []byte, p jsonPath) (found [][]json.RawMessage, ok bool) {
	arrays := membersAt(t, doc, p.names)
	var elements []json.RawMessage
	if len(arrays) != 1 || json.Unmarshal(arrays[0], &elements) != nil || elements == nil {
		return nil, false
	}
	for _, e := range elements {
		found = append(found, membersAt(t, e, p.rest))
	}
	return found, true
}

func FuzzBatch(f *testing.F) {
	for _, doc := range []string{
		`[{"id":"a"},{"id":1}]`, `{"id":[ {"id":"a"} , {"id":"a"} ]}`, `["a",2]`, `[]`, `{"id":null}`, `[{"id":"a","id":"b"}]`, `[{"id":{"id":7}},[]]`,
		`[{"x":1}]`, `[[[{"id":1}]]]`, `{"id":[{"id":"\ud83e"}],"\u0069d":[]}`, `[{"id":1e3}]`, `[1,2,]`, "",
	} {
		for _, path := range []string{"$[*].id", "id[*].id", "[*]", "id[*]", "$[*].id.id"} {
			f.Add([]byte(doc), path)
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		p, err := parsePath(path)
		if err != nil || !p.each {
			return
		}
		v := mustNew(t, customConfig(Scheme{}, eventID(IDSource{FromJSON, path})))
		ids, err := v.EventIDs(&Request{Body: doc}, Result{})
		if err != nil && Reason(err) == "" {
			t.Fatalf("no reason: %v", err)
		}
		if !json.Valid(doc) || !utf8.Valid(doc) || !utf8.ValidString(path) || strings.Contains(path, "\uFFFD") {
			if err == nil && !json.Valid(doc) {
				t.Fatalf("ids in what is no JSON: %q", doc)
			}
			return // encoding/json replaces what is no UTF-8
		}
		all, ok := membersOfEach(t, doc, p)
		want, bad := map[string]bool{}, !ok || len(all) == 0
		for _, values := range all {
			if len(values) != 1 {
				bad = true
				continue
			}
			_, key, err := jsonID(bytes.TrimSpace(values[0]))
			bad = bad || err != nil
			want[key] = true
		}
		if bad != (err != nil) {
			t.Fatalf("%s in %q: %v", path, doc, err)
		}
		if err == nil && len(ids) != len(all) || slices.ContainsFunc(ids, func(id ID) bool { return !want[id.Key] }) {
			t.Fatalf("%s in %q: got %v, want %v", path, doc, ids, want)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"id", "a.b.c", `a\.b`, `\\`, ".", `\`, "", "a..b", "$.a", "$", "$[*]", "$.a[*].b", "[*].id", "a[*][*]", `\$.a\[*]`, `\\[*]`, "a[0]"} {
		f.Add(s)
	}
	escape := strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `$`, `\$`)
	join := func(names []string) string {
		var parts []string
		for _, n := range names {
			parts = append(parts, escape.Replace(n))
		}
		return strings.Join(parts, ".")
	}
	bare := func(path string) string { return strings.ReplaceAll(path, `\`, "") }
	f.Fuzz(func(t *testing.T, path string) {
		p, err := parsePath(path)
		if err != nil {
			return
		}
		again := join(p.names)
		if p.each {
			again += eachElement
		}
		if len(p.rest) > 0 {
			again += "." + join(p.rest)
		}
		if q, err := parsePath(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%q is %q, which is %v", path, again, q)
		}
		if b := bare(path); b != bare(again) && b != "$."+bare(again) && b != "$"+bare(again) {
			t.Errorf("%q became %q", path, again)
		}
	})
}

func FuzzPayload(f *testing.F) {
	for _, s := range []string{"{body}", "{timestamp}.{body}", "v0:{timestamp}:{body}", "{http.request.method}{url}{body}", "{", "}", "{{body}}", "{}", "{body"} {
		f.Add(s)
	}
	values := parts{body: []byte("{body}"), timestamp: "{timestamp}", id: "{id}", urlHead: "{ur", urlTail: "l}", method: "{method}"}
	short := strings.NewReplacer("{http.request.method}", "{method}", "{http.request.body}", "{body}")
	f.Fuzz(func(t *testing.T, template string) {
		p, err := parsePayload(template)
		if err != nil {
			return
		}
		var got text
		if p.writeTo(&got, &values); got.String() != short.Replace(template) {
			t.Errorf("%q became %q", template, got.String())
		}
		if !strings.Contains(got.String(), "{body}") {
			t.Errorf("%q leaves out the body", template)
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{"1767225600", "1767225600000", "2026-01-01T00:00:00Z", "+1", "-1", "", "99999999999999999999", "0"} {
		f.Add(s, int64(1767225600))
	}
	f.Fuzz(func(t *testing.T, raw string, unix int64) {
		now := time.Unix(unix%farFuture, 0)
		for _, unit := range []string{UnixSeconds, UnixMillis, RFC3339} {
			got, err := checkTime(raw, unit, time.Hour, now)
			if err != nil {
				if Reason(err) != "stale" || strings.Contains(err.Error(), " -") {
					t.Errorf("%q: %v", raw, err)
				}
				continue
			}
			if got.Sub(now).Abs() > time.Hour {
				t.Errorf("%q accepted as %v at %v", raw, got, now)
			}
			if unit != RFC3339 && strings.TrimLeft(formatTime(got, unit), "0") != strings.TrimLeft(raw, "0") {
				t.Errorf("%q read as %v", raw, got)
			}
		}
	})
}

func FuzzSecret(f *testing.F) {
	for _, s := range []string{testSecret, swSecret, "v1,whsec_QUJD", "414243", " x", "\"x\"", "", "QU\nJD", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, format := range []string{Text, Base64, Hex} {
			key, err := decodeSecret(value, format)
			if err != nil {
				if key != nil || len(value) > 12 && strings.Contains(err.Error(), value) {
					t.Errorf("%q: %q, %v", value, key, err)
				}
				continue
			}
			again := map[string]string{
				Text: string(key), Base64: encodeDigest(encodings[Base64], key), Hex: encodeDigest(nil, key),
			}[format]
			if len(key) == 0 || again != strings.TrimPrefix(value, "whsec_") && again != value && !strings.EqualFold(again, value) {
				t.Errorf("%s %q: key %q", format, value, key)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"id=a", "x=1&id=%41", "id=a&id=b", "id", "&&=&id=", "id=%zz", "i%64=a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		value, err := queryValue("/h?"+query, "id")
		if err != nil {
			if Reason(err) == "" {
				t.Errorf("no reason: %v", err)
			}
			return
		}
		// net/url refuses semicolons, which are ordinary bytes elsewhere.
		if values := urlValues(query); !slices.Contains(values, value) && !strings.Contains(query, ";") {
			t.Errorf("%q: got %q, net/url has %q", query, value, values)
		}
	})
}
