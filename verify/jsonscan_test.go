package verify

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPathFindsTheMemberWhereverItStands(t *testing.T) {
	for _, c := range []struct{ doc, path, want string }{
		{`{"id":"a"}`, "id", `"a"`},
		{" \r\n\t{ \"x\" : [ 1 , { \"id\" : 2 } ] ,\n\"id\" :\t\"a\" } ", "id", `"a"`},
		{`{"a":{"b":{"c":1}},"c":2}`, "a.b.c", `1`},
		{`{"a.b":1,"a":{"b":2}}`, `a\.b`, `1`},
		{`{"a.b":1,"a":{"b":2}}`, `a.b`, `2`},
		{`{"a\\b":1}`, `a\\b`, `1`},
		{`{"\u0069d":1}`, "id", `1`},
		{`{"\ud83e\uddfe":1}`, "\U0001F9FE", `1`},
		{`{"x":"}]\"{[","id":1}`, "id", `1`},
		{`{"x":"\\","id":1}`, "id", `1`},
		{`{"id":{"y":[{}]} ,"z":0}`, "id", `{"y":[{}]}`},
		{`{"":0,"id":-12}`, "id", `-12`},
		{`{"idx":1,"i":2,"id":3}`, "id", `3`},
		{`{"data":{"id":1,"id":2},"id":3}`, "id", `3`},
	} {
		path, err := parseSinglePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := findJSON([]byte(c.doc), path); err != nil || string(got) != c.want {
			t.Errorf("%s at %s: got %s, %v", c.path, c.doc, got, err)
		}
	}
}

func TestRepeatedMemberOnThePathIsRefused(t *testing.T) {
	v := jsonVerifier(t, "data.id")
	for _, body := range []string{
		`{"data":{"id":"A","id":"B"}}`, `{"data":{"id":"A","id":"A"}}`, `{"data":{"id":"A","\u0069d":"B"}}`,
		`{"data":{"\u0069\u0064":"A","x":1,"id":null}}`, `{"data":{"id":"A"},"data":{}}`, `{"data":1,"d\u0061ta":{"id":"A"}}`,
	} {
		noID(t, v, signed(body), ErrAmbiguousID)
	}
}

func TestMembersAreNamedExactly(t *testing.T) {
	v := jsonVerifier(t, "id")
	for _, body := range []string{`{"ID":1}`, `{"Id":1}`, `{"id ":1}`, `{"i\u0064\ud800":1}`, `{"i\\u0064":1}`, `{"x":{"id":1}}`} {
		noID(t, v, signed(body), ErrMissingID)
	}
}

func TestPathLeadsThroughObjectsOnly(t *testing.T) {
	v := jsonVerifier(t, "data.id")
	if e := noID(t, v, signed(`[{"data":{"id":"a1"}},{"data":{"id":"a2"}}]`), ErrBadID); !strings.Contains(e.Detail, "array") {
		t.Errorf("no reason: %v", e)
	}
	noID(t, v, signed(`{"data":[{"id":1}]}`), ErrBadID)
	noID(t, v, signed(`{"data":"id"}`), ErrBadID)
	noID(t, v, signed(`{"data":null}`), ErrMissingID)
}

func TestInvalidJSONHasNoID(t *testing.T) {
	v := jsonVerifier(t, "id")
	for _, body := range []string{
		`{"id":"a"`, `{"id":"a"}x`, `{"id":"a"}{}`, `{"id":'a'}`, `{id:"a"}`, `{"id":"a",}`, "\ufeff{\"id\":\"a\"}",
		`{"id":"a"} // c`, `{"id":01}`, `{"id":+1}`, `{"id":NaN}`, "{\"id\":\"a\nb\"}", `{"id":"\x"}`, `id=a`, "\x00",
	} {
		noID(t, v, signed(body), ErrBadID)
	}
}

func TestStringsAreUnescapedAndKeptByteByByte(t *testing.T) {
	v := jsonVerifier(t, "id")
	for raw, want := range map[string]string{
		`\u0061\/\\\"`: `a/\"`, `\b\f\n\r\tx`: "\b\f\n\r\tx", `\ud83e\uddfe`: "\U0001F9FE", "\U0001F9FE": "\U0001F9FE",
		"a\xffb": "a\xffb", "\\u0061\xff": "a\xff", `\u0000`: "\x00", `\uFFFD`: "\uFFFD", "\x7f": "\x7f", `\u00E9`: "é",
	} {
		if id := idOf(t, v, signed(`{"id":"`+raw+`"}`)); id.Key != want {
			t.Errorf("%s: got %q", raw, id.Key)
		}
	}
}

func TestLoneSurrogatesAreNoID(t *testing.T) {
	v := jsonVerifier(t, "id")
	for _, raw := range []string{`\ud83e`, `\uddfe`, `a\ud83eb`, `\ud83e\n`, `\ud83e\ud83e`, `\uddfe\ud83e`, `\ud83e\u0041`, `\ud83e\\uddfe`} {
		noID(t, v, signed(`{"id":"`+raw+`"}`), ErrBadID)
	}
}

func TestDeepNestingCostsNoStack(t *testing.T) {
	nest := func(n int) string {
		return `{"x":` + strings.Repeat(`[`, n) + strings.Repeat(`]`, n) + `,"id":"a"}`
	}
	v := jsonVerifier(t, "id")
	if id := idOf(t, v, signed(nest(9998))); id.Key != "a" {
		t.Errorf("got %q", id.Key)
	}
	noID(t, v, signed(nest(1000000)), ErrBadID)
	deep := strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999)
	path := slices.Repeat([]string{"a"}, 9999)
	if got, err := findJSON([]byte(deep), path); err != nil || string(got) != "1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestJSONIDAllocatesOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops pooled values")
	}
	v := jsonVerifier(t, "id")
	for name, doc := range map[string]string{"first": jsonDoc(1024, true), "last": jsonDoc(1024, false)} {
		r := signed(doc)
		n := testing.AllocsPerRun(200, func() { v.EventID(r, Result{}) })
		if n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestPathsAreParsedStrictly(t *testing.T) {
	for path, want := range map[string]jsonPath{
		"id":              {names: []string{"id"}},
		"a.b":             {names: []string{"a", "b"}},
		`a\.b.c`:          {names: []string{"a.b", "c"}},
		`\\`:              {names: []string{`\`}},
		`a\\.b`:           {names: []string{`a\`, "b"}},
		"a b":             {names: []string{"a b"}},
		"$.id":            {names: []string{"id"}},
		"$.$.id":          {names: []string{"$", "id"}},
		`\$`:              {names: []string{"$"}},
		"$id":             {names: []string{"$id"}},
		`\$.id`:           {names: []string{"$", "id"}},
		"a.$ref":          {names: []string{"a", "$ref"}},
		"$[*]":            {each: true},
		"[*]":             {each: true},
		"$[*].id":         {each: true, rest: []string{"id"}},
		"events[*].a.b":   {names: []string{"events"}, each: true, rest: []string{"a", "b"}},
		"$.a.b[*].id":     {names: []string{"a", "b"}, each: true, rest: []string{"id"}},
		`a\[*].id`:        {names: []string{"a[*]", "id"}},
		`a\\[*].id`:       {names: []string{`a\`}, each: true, rest: []string{"id"}},
		`$\[*].id`:        {names: []string{"$[*]", "id"}},
		`\$[*].id`:        {names: []string{"$"}, each: true, rest: []string{"id"}},
		`a[*].\[0].$.id]`: {names: []string{"a"}, each: true, rest: []string{"[0]", "$", "id]"}},
	} {
		if got, err := parsePath(path); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	for _, path := range []string{
		"", "$", ".", "a.", ".a", "a..b", `\`, `a\`, `\a`, `a\ b`, "$.", "$..a", "a[0]", "a[0].id", "a[", "a.[*]", "[*]id", "a[*]id", "a[*].",
		"a[*][*]", "a[*].b[*]", "$[*]..id", ".[*]", `a\]`, "a[*", "$[0]",
	} {
		if got, err := parsePath(path); err == nil {
			t.Errorf("%s: got %+v", path, got)
		}
	}
}
