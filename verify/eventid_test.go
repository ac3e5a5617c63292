package verify

import (
	"strings"
	"testing"
)

func TestBlankIDsAreRefused(t *testing.T) {
	v := custom(t, Scheme{})
	noID(t, v, signed("{}"), ErrMissingID)
	noID(t, v, signed("{}", "X-Id: "), ErrMissingID)
	noID(t, v, signed("{}", "X-Id:    "), ErrMissingID)
	noID(t, v, signed("{}", "X-Id: ", "X-Id: "), ErrMissingID)
	for body, want := range map[string]*Error{
		`{"id":""}`: ErrMissingID, `{"id":" \t"}`: ErrMissingID, `{"id":"\u0020\u00a0"}`: ErrMissingID, `{"id":null}`: ErrMissingID,
		`{}`: ErrMissingID, ``: ErrMissingID, ` `: ErrMissingID, `null`: ErrMissingID, `{"ID":"x"}`: ErrMissingID,
		`{"id":[]}`: ErrBadID, `{"id":{}}`: ErrBadID, `{"id":true}`: ErrBadID, `{"id":false}`: ErrBadID, `"id"`: ErrBadID,
	} {
		noID(t, jsonVerifier(t, "id"), signed(body), want)
	}
}

func TestThereIsNoFallbackWhenTheIDIsGone(t *testing.T) {
	v := preset(t, "stableops", testSecret)
	sig := "X-Product-Signature: " + paymosHeader(testSecret, noon, payBody)
	if id := idOf(t, v, post(payBody, sig, "X-Event-Id: evt_1")); id.Key != "evt_1" {
		t.Errorf("got %q", id.Key)
	}
	noID(t, v, post(payBody, sig), ErrMissingID)
}

func TestHeaderAndBodyShareOneKeySpace(t *testing.T) {
	header := idOf(t, custom(t, Scheme{}), signed(`{"id":"evt_1"}`, "X-Id: evt_1"))
	body := idOf(t, jsonVerifier(t, "id"), signed(`{"id":"evt_1"}`))
	if header != body {
		t.Errorf("%v and %v", header, body)
	}
}

func TestStableIDInTheBodySurvivesNewDeliveryIDs(t *testing.T) {
	v := jsonVerifier(t, "event.id")
	first := idOf(t, v, signed(`{"event":{"id":"e1"},"attempt":1}`, "X-Delivery-Id: d1"))
	second := idOf(t, v, signed(`{"attempt":2,"event":{"id":"e1"}}`, "X-Delivery-Id: d2"))
	if first != second {
		t.Errorf("%v and %v", first, second)
	}
}

func TestCompositeOfStableFieldsIgnoresTheRest(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{FromJSON, "event"}, IDSource{FromJSON, "doc.id"}))
	first := idOf(t, v, signed(`{"event":"signed","doc":{"id":7},"createdAt":1}`))
	second := idOf(t, v, signed(`{"event":"signed","doc":{"id":7},"createdAt":2}`))
	if first != second || first.Text != "signed:7" || first.Key != "6:signed1:7" {
		t.Errorf("%v and %v", first, second)
	}
	noID(t, v, signed(`{"event":"signed"}`), ErrMissingID)
}

func TestCompositesDoNotCollide(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{FromHeader, "X-A"}, IDSource{FromHeader, "X-B"}))
	seen := map[string]string{}
	for _, pair := range [][2]string{{"a b", "c"}, {"a", "b c"}, {"1:a", "b"}, {"1", "a1:b"}, {"a1:b", "c"}, {"a", "b1:c"}} {
		id := idOf(t, v, signed("{}", "X-A: "+pair[0], "X-B: "+pair[1]))
		if other, ok := seen[id.Key]; ok {
			t.Errorf("%v collides with %s", pair, other)
		}
		seen[id.Key] = pair[0] + "|" + pair[1]
	}
}

func TestLargeIntegersKeepTheirDigits(t *testing.T) {
	v := jsonVerifier(t, "id")
	seen := map[string]bool{}
	for _, n := range []string{"9007199254918487", "9007199254918488", "9007199254918489", "123456789012345678901234567890", "0", "-0", "-1"} {
		id := idOf(t, v, signed(`{"id":`+n+`}`))
		if id.Key != n || id.Text != n {
			t.Errorf("%s became %v", n, id)
		}
		seen[id.Key] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d different keys", len(seen))
	}
	for _, n := range []string{"1e3", "1E3", "1000.0", "-0.0", "1.5"} {
		noID(t, v, signed(`{"id":`+n+`}`), ErrBadID)
	}
}

func TestStringAndNumberAreDifferentIDs(t *testing.T) {
	v := jsonVerifier(t, "id")
	for value, want := range map[string]ID{
		`123`:       {Text: "123", Key: "123"},
		`"123"`:     {Text: "123", Key: `"123`},
		`"\u0031"`:  {Text: "1", Key: `"1`},
		`"\"123"`:   {Text: `"123`, Key: `""123`},
		`"-5"`:      {Text: "-5", Key: `"-5`},
		`"007"`:     {Text: "007", Key: "007"},
		`"1e3"`:     {Text: "1e3", Key: "1e3"},
		`"-"`:       {Text: "-", Key: "-"},
		`"evt 1"`:   {Text: "evt 1", Key: "evt 1"},
		`" evt_1 "`: {Text: " evt_1 ", Key: " evt_1 "},
	} {
		if id := idOf(t, v, signed(`{"id":`+value+`}`)); id != want {
			t.Errorf("%s: got %v, want %v", value, id, want)
		}
	}
	if id := idOf(t, custom(t, Scheme{}), signed("{}", "X-Id: 123")); id.Key != "123" {
		t.Errorf("header: %v", id)
	}
}

func TestDifferingHeaderLinesAreAmbiguous(t *testing.T) {
	v := custom(t, Scheme{})
	noID(t, v, signed("{}", "X-Id: evt_a", "X-Id: evt_b"), ErrAmbiguousID)
	noID(t, v, signed("{}", "X-Id: evt_a", "X-Id: evt_a", "X-Id: EVT_A"), ErrAmbiguousID)
	for _, headers := range [][]string{{"X-Id: evt_a", "X-Id: evt_a"}, {"x-id: evt_a"}} {
		if id := idOf(t, v, signed("{}", headers...)); id.Key != "evt_a" {
			t.Errorf("got %q", id.Key)
		}
	}
	if id := idOf(t, v, signed("{}", "X-Id: evt_a, evt_b")); id.Key != "evt_a, evt_b" {
		t.Errorf("got %q", id.Key)
	}
}

func TestQueryParametersAreIDs(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{FromQuery, "data.id"}))
	at := func(uri string) *Request {
		r := signed("{}")
		r.URI = uri
		return r
	}
	for uri, want := range map[string]string{
		"/h?data.id=A": "A", "/h?x=1&data.id=A%2Fb+c": "A/b c", "/h?data%2Eid=A": "A", "/h?data.id=A&data.id=A": "A",
		"/h?%zz=1&data.id=A": "A", "/h?data.id=a=b": "a=b", "/h?data.id=a;b": "a;b", "/h?data.id=a?b": "a?b",
	} {
		if id := idOf(t, v, at(uri)); id.Key != want {
			t.Errorf("%s: got %q", uri, id.Key)
		}
	}
	for uri, want := range map[string]*Error{
		"/h": ErrMissingID, "/h?": ErrMissingID, "/h?data.id": ErrMissingID, "/h?data.id=+": ErrMissingID, "/h?DATA.ID=1": ErrMissingID,
		"/h?data.id=A&data.id=B": ErrAmbiguousID, "/h?data.id=A&data.id=": ErrAmbiguousID, "/h?data.id=%zz": ErrBadID,
	} {
		noID(t, v, at(uri), want)
	}
}

func TestBodyHashIsAnID(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{Kind: FromBodySHA256}))
	const want = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if id := idOf(t, v, signed("")); id.Key != want || id.Text != want {
		t.Errorf("got %v", id)
	}
}

func TestSignedIDCountsAgainstItsUnsignedCopy(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	sig := "X-Webhook-Signature: " + paymosHeader(testSecret, noon, payBody)
	for _, c := range []struct {
		headers []string
		differs bool
	}{
		{nil, false}, {[]string{"X-Webhook-Id: evt_1"}, false}, {[]string{"X-Webhook-Id: evt_2"}, true},
		{[]string{"X-Webhook-Id: "}, true}, {[]string{"X-Webhook-Id: evt_1", "X-Webhook-Id: evt_2"}, true},
	} {
		id := idOf(t, v, post(payBody, append(c.headers, sig)...))
		if id.Key != "evt_1" || id.HeaderDiffers != c.differs {
			t.Errorf("%v: got %v", c.headers, id)
		}
	}
	own := mustNew(t, Config{Sender: "paymos", Secrets: []Secret{{Value: testSecret}}, EventID: []IDSource{{FromJSON, "n"}}})
	if id := idOf(t, own, post(payBody, sig, "X-Webhook-Id: evt_2")); id.Key != "1" || id.HeaderDiffers {
		t.Errorf("with an id of one's own: %v", id)
	}
}

func TestTextIsOnePrintableLine(t *testing.T) {
	for s, want := range map[string]string{
		"evt_1": "evt_1", "a b": "a b", "Zoë ☕ \uFFFD": "Zoë ☕ \uFFFD",
		"a\nb": `a\nb`, "a\x00": `a\x00`, "a\xff": `a\xff`, "\u2028": `\u2028`, "\u202e": `\u202e`,
	} {
		if got := printable(s); got != want {
			t.Errorf("%q: got %q", s, got)
		}
	}
	v := jsonVerifier(t, "id")
	if id := idOf(t, v, signed(`{"id":"a\r\nX-Evil: 1"}`)); strings.ContainsAny(id.Text, "\r\n") || id.Key != "a\r\nX-Evil: 1" {
		t.Errorf("got %v", id)
	}
}
