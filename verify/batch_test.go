package verify

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// idsOf verifies a request and returns the keys of all its event ids.
func idsOf(t *testing.T, v *Verifier, r *Request) []string {
	t.Helper()
	ids, err := v.EventIDs(r, accept(t, v, r))
	if err != nil {
		t.Fatalf("no ids: %v", err)
	}
	var keys []string
	for _, id := range ids {
		keys = append(keys, id.Key)
	}
	return keys
}

// noIDs verifies a request and returns why it has no event ids.
func noIDs(t *testing.T, v *Verifier, r *Request, want *Error) *Error {
	t.Helper()
	_, err := v.EventIDs(r, accept(t, v, r))
	return isKind(t, err, want)
}

func TestEveryEventOfABatchHasItsID(t *testing.T) {
	for _, c := range []struct {
		path, body string
		want       []string
	}{
		{"$[*].id", `[{"id":"a"},{"id":"b"}]`, []string{"a", "b"}},
		{"$[*].id", ` [ {"x":[1,{"id":0}], "id" : "b" } , {"id":"a"} ] `, []string{"b", "a"}},
		{"[*].eventId", `[{"eventId":100},{"eventId":"100"}]`, []string{"100", `"100`}},
		{"events[*].webhookEventId", `{"destination":"U1","events":[{"webhookEventId":"01A"},{"webhookEventId":"01B"}]}`, []string{"01A", "01B"}},
		{"notificationItems[*].NotificationRequestItem.pspReference", `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"79"}}]}`, []string{`"79`}},
		{"$.a.b[*]", `{"a":{"b":["x","y"]}}`, []string{"x", "y"}},
	} {
		v := jsonVerifier(t, c.path)
		if got := idsOf(t, v, signed(c.body)); !slices.Equal(got, c.want) {
			t.Errorf("%s at %s: got %q", c.path, c.body, got)
		}
		if !v.Batch() || !v.IDSigned() || v.VerifyOnly() {
			t.Errorf("%s: batch %v, id signed %v, verify only %v", c.path, v.Batch(), v.IDSigned(), v.VerifyOnly())
		}
	}
}

func TestEachEventOfABatchHasTheSumOfItsOwnBytes(t *testing.T) {
	v := jsonVerifier(t, "$[*].id")
	ids, err := v.EventIDs(signed(` [ {"id":"a"} ,{"id":"b"}, {"id": "a"},{"id":"a"}]`), Result{})
	if err != nil || len(ids) != 4 {
		t.Fatalf("got %v, %v", ids, err)
	}
	if ids[0].Sum != sha256.Sum256([]byte(`{"id":"a"}`)) || ids[0] != ids[3] || ids[0].Key != ids[2].Key || ids[0].Sum == ids[2].Sum {
		t.Errorf("got %v", ids)
	}
}

// An event whose id cannot be told would go unnoticed among its neighbours.
func TestOneEventWithoutAnIDRefusesTheBatch(t *testing.T) {
	v := jsonVerifier(t, "$[*].id")
	for body, want := range map[string]*Error{
		`[{"id":"a"},{}]`: ErrMissingID, `[{"id":"a"},null]`: ErrMissingID, `[{"id":null}]`: ErrMissingID, `[{"id":"a"},{"id":" "}]`: ErrMissingID,
		`[{"id":"a"},{"id":"b","id":"c"}]`: ErrAmbiguousID, `[{"id":"a"},{"id":1.5}]`: ErrBadID, `[{"id":"a"},"b"]`: ErrBadID, `[[{"id":"a"}]]`: ErrBadID,
	} {
		noIDs(t, v, signed(body), want)
	}
}

func TestABatchIsAnArrayWithEvents(t *testing.T) {
	v := jsonVerifier(t, "events[*].id")
	for body, want := range map[string]*Error{
		`{"events":[]}`: ErrMissingID, `{"events":[ ]}`: ErrMissingID, `{"events":null}`: ErrMissingID, `{}`: ErrMissingID, ``: ErrMissingID,
		`{"events":{"id":"a"}}`: ErrBadID, `{"events":"a"}`: ErrBadID, `[{"id":"a"}]`: ErrBadID, `{"events":[{"id":"a"}]`: ErrBadID,
		`{"events":[{"id":"a"}],"events":[]}`: ErrAmbiguousID,
	} {
		noIDs(t, v, signed(body), want)
	}
	if e := noIDs(t, v, signed(`{"events":[]}`), ErrMissingID); !strings.Contains(e.Detail, "empty") {
		t.Errorf("no reason: %v", e)
	}
}

func TestABatchIsBounded(t *testing.T) {
	v := jsonVerifier(t, "$[*]")
	body := func(n int) string {
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprint(i))
		}
		return "[" + strings.Join(ids, ",") + "]"
	}
	if got := idsOf(t, v, signed(body(MaxBatch))); len(got) != MaxBatch {
		t.Errorf("%d ids", len(got))
	}
	noIDs(t, v, signed(body(MaxBatch+1)), ErrBadID)
}

func TestCompositesOfABatchAreZippedByElement(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{FromJSON, "account"}, IDSource{FromJSON, "e[*].type"}, IDSource{FromJSON, "$.e[*].id"}))
	body := `{"account":"A","e":[{"type":"x","id":1},{"type":"y","id":1},{"id":2,"type":"x"}]}`
	ids, err := v.EventIDs(signed(body), Result{})
	if err != nil || len(ids) != 3 || ids[0].Text != "A:x:1" || ids[0].Key != "1:A1:x1:1" || ids[2].Text != "A:x:2" {
		t.Errorf("got %v, %v", ids, err)
	}
	noIDs(t, v, signed(`{"account":"A","e":[{"type":"x","id":1},{"type":"y"}]}`), ErrMissingID)
	noIDs(t, v, signed(`{"e":[{"type":"x","id":1}]}`), ErrMissingID)
}

func TestPathsOverDifferentArraysAreRefused(t *testing.T) {
	for _, other := range []string{"b[*].id", "$[*].id", "a.b[*].id"} {
		if _, err := New(customConfig(Scheme{}, eventID(IDSource{FromJSON, "a[*].id"}, IDSource{FromJSON, other}))); err == nil {
			t.Errorf("%s accepted", other)
		}
	}
}

func TestSingleDeliveriesHaveOneID(t *testing.T) {
	v := jsonVerifier(t, "id")
	if got := idsOf(t, v, signed(`{"id":"a"}`)); !slices.Equal(got, []string{"a"}) || v.Batch() || v.VerifyOnly() {
		t.Errorf("got %q", got)
	}
	noIDs(t, v, signed(`{}`), ErrMissingID)
}

// The id of a batch is none of its events' ids.
func TestABatchHasNoSingleID(t *testing.T) {
	noID(t, jsonVerifier(t, "$[*].id"), signed(`[{"id":"a"}]`), ErrAmbiguousID)
}

func TestNoEventIDIsTakenWhereNoneIsWanted(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{Kind: NoID}))
	r := signed(`whatever`)
	if got := idsOf(t, v, r); got != nil || !v.VerifyOnly() || v.Batch() {
		t.Errorf("got %q", got)
	}
	noID(t, v, r, ErrMissingID)
	for _, ids := range [][]IDSource{{{NoID, "x"}}, {{Kind: NoID}, {FromJSON, "id"}}, {{FromJSON, "id"}, {Kind: NoID}}} {
		if _, err := New(customConfig(Scheme{}, eventID(ids...))); err == nil {
			t.Errorf("%v accepted", ids)
		}
	}
}

func TestASenderWithoutAnEventIDWantsAChoice(t *testing.T) {
	s := Sender{Name: "acme", Title: "Acme", NoEventID: "its ids change with every attempt."}
	err := s.hasID()
	if err == nil || !strings.Contains(err.Error(), "acme: its ids change with every attempt. ") || !strings.Contains(err.Error(), "event_id none") {
		t.Errorf("got %v", err)
	}
	s.EventID = []IDSource{{Kind: NoID}}
	if err := s.hasID(); err != nil {
		t.Error(err)
	}
	for _, name := range Senders() {
		s, _ := SenderNamed(name)
		c := Config{Sender: name, Secrets: []Secret{{Value: testSecret}}}
		if _, err := New(c); (s.NoEventID != "") && (err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(s.NoEventID, "."))) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
