package verify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// deliver signs and verifies one delivery.
func deliver(t *testing.T, v *Verifier, in SignInput, uri string) ID {
	t.Helper()
	in.Now = noon
	var err error
	if in.Body, err = v.SignBody(in); err != nil {
		t.Fatal(err)
	}
	h, err := v.Sign(in)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: or(in.Method, "POST"), URI: uri, Header: h, Body: in.Body}
	ids, err := v.EventIDs(r, accept(t, v, r))
	if err != nil || len(ids) != 1 {
		t.Fatalf("got %v, %v", ids, err)
	}
	return ids[0]
}

func TestSampleDeliveriesOfEverySenderVerify(t *testing.T) {
	const url = "https://h.test/cb?q=1"
	for _, name := range signingSenders() {
		v := sender(t, name)
		id := deliver(t, v, SignInput{URL: url, Body: SampleBody(name, "evt \"1\""), ID: "evt \"1\""}, "/cb?q=1")
		if s, _ := SenderNamed(name); s.NoEventID == "" && !strings.Contains(id.Text, "evt \"1\"") || id.HeaderDiffers {
			t.Errorf("%s: got %v", name, id)
		}
	}
}

func TestSampleBodiesOfTwoEventsDiffer(t *testing.T) {
	for _, name := range Senders() {
		s, _ := SenderNamed(name)
		inHeader := slices.ContainsFunc(s.EventID, func(id IDSource) bool { return id.Kind == FromHeader })
		if len(s.EventID) == 0 && s.NoEventID == "" {
			inHeader = true // the scheme's
		}
		if !inHeader && bytes.Equal(SampleBody(name, "1"), SampleBody(name, "2")) {
			t.Errorf("%s: the sample does not hold the id", name)
		}
	}
}

func TestSampleBodyOfAnUnknownSenderHasAnID(t *testing.T) {
	if id := idOf(t, jsonVerifier(t, "id"), signed(string(SampleBody("", "evt_1")))); id.Key != "evt_1" {
		t.Errorf("got %v", id)
	}
}

func TestHeadersLookAsTheSenderWritesThem(t *testing.T) {
	for _, c := range []struct{ sender, secret, header, want string }{
		{"paymos", testSecret, "X-Webhook-Signature", paymosHeader(testSecret, noon, "{}")},
		{"github", testSecret, "X-Hub-Signature-256", "sha256=" + sign(testSecret, "{}")},
		{"svix", swSecret, "Svix-Timestamp", "1767225600"},
		{"paymos", testSecret, "X-Webhook-Id", "evt_1"},
	} {
		h, err := preset(t, c.sender, c.secret).Sign(SignInput{Body: []byte("{}"), ID: "evt_1", Now: noon})
		if err != nil || h.Get(c.header) != c.want {
			t.Errorf("%s: %s is %q (%v)", c.sender, c.header, h.Get(c.header), err)
		}
	}
}

func TestSignUsesTheFirstSecret(t *testing.T) {
	v := custom(t, Scheme{}, secrets("new", "old"))
	h, err := v.Sign(SignInput{ID: "1", Body: []byte("{}")})
	if err != nil || h.Get("X-Sig") != sign("new", "{}") {
		t.Errorf("%v, %v", h, err)
	}
}

func TestSignAsksForWhatIsMissing(t *testing.T) {
	withURL := func(c *Config) { c.PublicURL = "https://h.test" }
	for name, v := range map[string]*Verifier{
		"id header":   preset(t, "github", testSecret),
		"signed id":   preset(t, "svix", swSecret),
		"url":         custom(t, Scheme{Payload: "{url}{body}"}, withURL, eventID(IDSource{FromJSON, "id"})),
		"id in query": custom(t, Scheme{Payload: "{id}{body}"}, eventID(IDSource{FromQuery, "id"})),
	} {
		if h, err := v.Sign(SignInput{}); err == nil {
			t.Errorf("%s: got %v", name, h)
		}
	}
}

func TestSignedQueryIDRoundTrips(t *testing.T) {
	v := custom(t, Scheme{Payload: "{id}.{body}"}, eventID(IDSource{FromQuery, "id"}))
	if id := deliver(t, v, SignInput{URL: "https://h.test/cb?id=a%20b", Body: []byte("{}")}, "/cb?id=a%20b"); id.Key != "a b" {
		t.Errorf("got %v", id)
	}
}

func TestUnsignedIDHeaderIsLeftOutWithoutAnID(t *testing.T) {
	h, err := preset(t, "paymos", testSecret).Sign(SignInput{Body: []byte("{}")})
	if _, ok := h[http.CanonicalHeaderKey("X-Webhook-Id")]; ok || err != nil {
		t.Errorf("%v, %v", h, err)
	}
}

// Where the id is not signed and a time is, the same body in the same second is
// taken for a replay of the other event.
func TestSamplesOfTwoEventsAreNoReplays(t *testing.T) {
	for _, name := range Senders() {
		s, _ := SenderNamed(name)
		if s.Tolerance != 0 && !s.IDSigned() && string(SampleBody(name, "1")) == string(SampleBody(name, "2")) {
			t.Errorf("%s: two events have the same body", name)
		}
	}
}
