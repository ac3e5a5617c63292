package verify

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, v *Verifier, signedAt, now time.Time) (Result, error) {
	t.Helper()
	return v.Verify(post(payBody, "X-Webhook-Signature: "+paymosHeader(testSecret, signedAt, payBody)), now)
}

func TestToleranceHoldsInBothDirectionsAndIsInclusive(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	for _, c := range []struct {
		age time.Duration
		ok  bool
	}{
		{0, true}, {5 * time.Minute, true}, {-5 * time.Minute, true},
		{5*time.Minute + 1, false}, {-5*time.Minute - 1, false}, {4 * time.Hour, false},
	} {
		res, err := at(t, v, noon, noon.Add(c.age))
		if (err == nil) != c.ok {
			t.Errorf("age %v: %v", c.age, err)
		}
		if c.ok && !res.Timestamp.Equal(noon) {
			t.Errorf("age %v: timestamp %v", c.age, res.Timestamp)
		}
		if !c.ok {
			if e := isKind(t, err, ErrStale); e.Age != c.age {
				t.Errorf("age %v reported as %v", c.age, e.Age)
			}
		}
	}
}

func TestStaleErrorNamesTheAge(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	_, err := at(t, v, noon, noon.Add(4*time.Hour))
	if !strings.Contains(isKind(t, err, ErrStale).Detail, "4h0m0s old") {
		t.Error(err)
	}
	_, err = at(t, v, noon.Add(time.Hour), noon)
	if !strings.Contains(isKind(t, err, ErrStale).Detail, "1h0m0s in the future") {
		t.Error(err)
	}
}

func TestWideToleranceAdmitsSendersThatKeepTheirTimestamp(t *testing.T) {
	for name, tolerance := range map[string]time.Duration{"24h": 24 * time.Hour, "off": ToleranceOff} {
		v := mustNew(t, Config{Sender: "paymos", Secrets: []Secret{{Value: testSecret}}, Tolerance: tolerance})
		if _, err := at(t, v, noon, noon.Add(4*time.Hour)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if v.Tolerance() != max(tolerance, 0) {
			t.Errorf("%s: %v", name, v.Tolerance())
		}
	}
}

func TestSignatureIsCheckedBeforeAge(t *testing.T) {
	v := preset(t, "paymos", "other")
	_, err := at(t, v, noon, noon.Add(4*time.Hour))
	isKind(t, err, ErrForged)
}

func unitVerifier(t *testing.T, unit string) func(raw string) (Result, error) {
	v := custom(t, Scheme{Payload: "{timestamp}.{body}", Timestamp: Timestamp{Header: "X-Time", Unit: unit}})
	return func(raw string) (Result, error) {
		return v.Verify(post("{}", "X-Time: "+raw, "X-Sig: "+sign(testSecret, raw+".{}")), noon)
	}
}

func TestWrongUnitIsNamed(t *testing.T) {
	for _, c := range []struct{ unit, raw, hint string }{
		{UnixSeconds, "1767225600123", "looks like milliseconds"},
		{UnixMillis, "1767225600", "looks like seconds"},
		{UnixSeconds, "2026-01-01T00:00:00Z", "looks like RFC 3339"},
		{RFC3339, "1767225600", "looks like seconds"},
		{RFC3339, "1767225600000", "looks like milliseconds"},
	} {
		_, err := unitVerifier(t, c.unit)(c.raw)
		if e := isKind(t, err, ErrStale); !strings.Contains(e.Detail, c.hint) {
			t.Errorf("%s %s: %v", c.unit, c.raw, err)
		}
	}
	_, err := unitVerifier(t, UnixSeconds)("1")
	if strings.Contains(err.Error(), "looks like") {
		t.Errorf("a hint out of nothing: %v", err)
	}
}

func TestEveryUnitIsRead(t *testing.T) {
	for unit, raw := range map[string]string{
		UnixSeconds: "1767225600", "": "0001767225600", UnixMillis: "1767225600000", RFC3339: "2026-01-01T01:00:00+01:00",
	} {
		if res, err := unitVerifier(t, unit)(raw); err != nil || !res.Timestamp.Equal(noon) {
			t.Errorf("%s: %v, %v", unit, res.Timestamp, err)
		}
	}
}

func TestUnixTimesArePlainDigits(t *testing.T) {
	for _, raw := range []string{"+1767225600", "-1767225600", "1767225600.0", "0x69559e80", "1_767_225_600", "1767225600 1", "\u0661767225600", "99999999999999999999", "253402300800"} {
		_, err := unitVerifier(t, UnixSeconds)(raw)
		isKind(t, err, ErrStale)
	}
}

func TestUnreadableTimeIsAcceptedOnlyWithToleranceOff(t *testing.T) {
	for _, raw := range []string{"soon", "253402300800"} { // the year 10000
		if got, err := checkTime(raw, UnixSeconds, ToleranceOff, noon); err != nil || !got.IsZero() {
			t.Errorf("%s: %v, %v", raw, got, err)
		}
		_, err := checkTime(raw, UnixSeconds, time.Hour, noon)
		isKind(t, err, ErrStale)
	}
	if got, err := checkTime("253402300800000", UnixMillis, ToleranceOff, noon); err != nil || !got.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTimesAreWrittenAsTheyAreRead(t *testing.T) {
	for _, unit := range []string{UnixSeconds, UnixMillis, RFC3339} {
		text := formatTime(noon, unit)
		if got, ok := parseTime(text, unit); !ok || !got.Equal(noon) {
			t.Errorf("%s: %s", unit, text)
		}
	}
}

func TestAgesDoNotOverflow(t *testing.T) {
	for _, raw := range []string{"0", fmt.Sprint(farFuture)} {
		_, err := checkTime(raw, UnixSeconds, time.Hour, noon)
		if e := isKind(t, err, ErrStale); (e.Age > 0) != (raw == "0") || strings.Contains(e.Detail, " -") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestTimestampMayBeInTheSignedBody(t *testing.T) {
	for _, s := range []Scheme{
		{Timestamp: Timestamp{JSON: "data.at", Unit: UnixMillis}},
		{Timestamp: Timestamp{JSON: "data.at", Unit: UnixMillis}, Payload: "{timestamp}.{body}"},
	} {
		v := custom(t, s)
		request := func(body, time string) *Request {
			if s.Payload == "" {
				return signed(body)
			}
			return post(body, "X-Sig: "+sign(testSecret, time+"."+body))
		}
		for _, body := range []string{`{"data":{"at":1767225600000}}`, `{"data":{"at":"1767225600000"}}`} {
			if res := accept(t, v, request(body, "1767225600000")); !res.Timestamp.Equal(noon) {
				t.Errorf("%s: %v", body, res.Timestamp)
			}
		}
		if !v.HasTimestamp() || v.Tolerance() != DefaultTolerance {
			t.Errorf("timestamp %v, tolerance %v", v.HasTimestamp(), v.Tolerance())
		}
		old := refuse(t, v, request(`{"data":{"at":1767225000000}}`, "1767225000000"), ErrStale)
		if old.Age != 10*time.Minute {
			t.Errorf("age %v", old.Age)
		}
		if e := refuse(t, v, request(`{"data":{"at":1767225600}}`, "1767225600"), ErrStale); !strings.Contains(e.Detail, "looks like seconds") {
			t.Error(e)
		}
	}
}

// The time is read only after the signature is found right, so that what is
// missing in a genuine body is stale and not unsigned.
func TestSignedBodyWithoutItsTimestampIsStale(t *testing.T) {
	s := Scheme{Timestamp: Timestamp{JSON: "at", Unit: UnixMillis}}
	v, off := custom(t, s), custom(t, s, func(c *Config) { c.Tolerance = ToleranceOff })
	for _, body := range []string{"", "{}", "no json", `{"at":null}`, `{"at":[1767225600000]}`, `{"at":1.767225600000e12}`, `{"at":1767225600000,"at":1767225600000}`, `{"at":" "}`} {
		refuse(t, v, signed(body), ErrStale)
		refuse(t, v, post(body, "X-Sig: "+sign("wrong", body)), ErrForged)
		if res := accept(t, off, signed(body)); !res.Timestamp.IsZero() {
			t.Errorf("%s: %v", body, res.Timestamp)
		}
	}
}

func TestSignKeepsTheTimestampOfTheBody(t *testing.T) {
	for _, payload := range []string{"{body}", "{timestamp}{body}"} {
		v := custom(t, Scheme{Timestamp: Timestamp{JSON: "at"}, Payload: payload})
		body := []byte(`{"at":1767225600}`)
		h, err := v.Sign(SignInput{ID: "e", Body: body, Now: noon.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		accept(t, v, &Request{Header: h, Body: body})
	}
}

func TestSignBodyFillsInTheTime(t *testing.T) {
	v := custom(t, Scheme{Timestamp: Timestamp{JSON: "d.at"}})
	for body, want := range map[string]string{
		`{"d":{"at":1},"x":2}`:   `{"d":{"at":1767225600},"x":2}`,
		`{"d":{"at":"1"},"x":2}`: `{"d":{"at":"1767225600"},"x":2}`,
	} {
		if got, err := v.SignBody(SignInput{Body: []byte(body), Now: noon}); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
	if _, err := v.SignBody(SignInput{Body: []byte("{}")}); err == nil {
		t.Error("there was no place for it")
	}
}
