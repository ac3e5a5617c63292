package verify

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const payBody = `{"event_id":"evt_1","n":1}`

func TestSignatureCoversTheBytesAsSent(t *testing.T) {
	v := custom(t, Scheme{})
	for name, body := range map[string]string{
		"spaces and key order": "{ \"b\" : 1,\n  \"a\":[ 2 ,3 ] }",
		"number spellings":     `{"n":1.0,"e":1e2}`,
		"emoji":                "{\"a\":\"\U0001F9FE\"}",
		"escaped surrogates":   `{"a":"\ud83e\uddfe"}`,
		"line separator":       "{\"a\":\"\u2028\"}",
		"escaped slash":        `{"a":"\/"}`,
		"invalid UTF-8":        "{\"a\":\"\xff\"}",
		"form":                 "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fx%22%7D&x=a+b",
		"windows-1252 form":    "name=J%F6rg&raw=\xe9",
		"byte order mark":      "\ufeff{}",
		"nothing":              "",
	} {
		t.Run(name, func(t *testing.T) {
			r := post(body, "X-Id: 1", "X-Sig: "+sign(testSecret, body))
			accept(t, v, r)
			r.Body = append(r.Body, '\n')
			refuse(t, v, r, ErrForged)
		})
	}
}

func TestContentTypeMakesNoDifference(t *testing.T) {
	v := jsonVerifier(t, "message.messageId")
	body := `{"message":{"messageId":"770011","data":"e30="},"subscription":"s"}`
	if id := idOf(t, v, signed(body, "Content-Type: text/plain; charset=UTF-8")); id.Text != "770011" {
		t.Errorf("got %q", id.Key)
	}
}

func TestEmptyBodyIsVerifiedLikeAnyOther(t *testing.T) {
	key := "0123456789abcdef"
	v := preset(t, "standard-webhooks", "whsec_"+encodeDigest(encodings[Base64], []byte(key)))
	h, err := v.Sign(SignInput{ID: "msg_1", Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: "POST", URI: "/", Header: h}
	if id := idOf(t, v, r); id.Key != "msg_1" {
		t.Errorf("got %q", id.Key)
	}
	noID(t, jsonVerifier(t, "id"), signed(""), ErrMissingID)
}

func TestEitherSecretOfARotationIsAccepted(t *testing.T) {
	header := fmt.Sprintf("t=%d,v1=%s,v1=%s", noon.Unix(),
		sign("new", fmt.Sprintf("%d.%s", noon.Unix(), payBody)), sign("old", fmt.Sprintf("%d.%s", noon.Unix(), payBody)))
	r := post(payBody, "X-Webhook-Signature: "+header)
	accept(t, preset(t, "paymos", "old"), r)
	accept(t, preset(t, "paymos", "new"), r)
	refuse(t, preset(t, "paymos", "other"), r, ErrForged)
}

func TestSignaturesOnSeveralHeaderLinesAreAccepted(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	right, wrong := paymosHeader(testSecret, noon, payBody), paymosHeader("wrong", noon, payBody)
	mac := strings.TrimPrefix(right, fmt.Sprintf("t=%d,", noon.Unix()))
	accept(t, v, post(payBody, "X-Webhook-Signature: "+wrong, "X-Webhook-Signature: "+right))
	accept(t, v, post(payBody, "X-Webhook-Signature: "+wrong, "X-Webhook-Signature: "+mac))
	accept(t, v, post(payBody, "X-Webhook-Signature: "+mac, "X-Webhook-Signature: "+wrong))
}

func TestDifferingTimestampsAreRefusedRatherThanChosenFrom(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	right, other := paymosHeader(testSecret, noon, payBody), paymosHeader("wrong", noon.Add(time.Second), payBody)
	refuse(t, v, post(payBody, "X-Webhook-Signature: "+right, "X-Webhook-Signature: "+other), ErrUnsigned)
	refuse(t, v, post(payBody, fmt.Sprintf("X-Webhook-Signature: t=%d,%s", noon.Unix(), right)), ErrUnsigned)

	s := custom(t, Scheme{Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-Time"}})
	sig := "X-Sig: " + sign(testSecret, "1767225600{}")
	accept(t, s, post("{}", sig, "X-Time: 1767225600", "X-Time: 1767225600"))
	refuse(t, s, post("{}", sig, "X-Time: 1767225600", "X-Time: 1767225601"), ErrUnsigned)
}

func TestMissingTimestampIsUnsigned(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	refuse(t, v, post(payBody, "X-Webhook-Signature: v1="+sign(testSecret, "."+payBody)), ErrUnsigned)
	refuse(t, v, post(payBody, "X-Webhook-Signature: t=,v1="+sign(testSecret, "."+payBody)), ErrUnsigned)
	s := custom(t, Scheme{Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-Time"}})
	refuse(t, s, post("{}", "X-Sig: "+sign(testSecret, "{}")), ErrUnsigned)
}

func TestUnsignedAndForgedAreToldApart(t *testing.T) {
	v := custom(t, Scheme{})
	refuse(t, v, post("{}"), ErrUnsigned)
	refuse(t, v, post("{}", "X-Sig: "), ErrUnsigned)
	refuse(t, v, post("{}", "X-Sig: potato"), ErrUnsigned)
	refuse(t, v, post("{}", "X-Sig: "+sign("wrong", "{}")), ErrForged)
}

func TestUnknownVersionsInASpaceSeparatedListAreSkipped(t *testing.T) {
	v := preset(t, "standard-webhooks", "whsec_"+encodeDigest(encodings[Base64], []byte("0123456789abcdef")))
	h, err := v.Sign(SignInput{ID: "1", Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	wrong := encodeDigest(encodings[Base64], make([]byte, 32))
	h.Set("webhook-signature", "v1a,AAAA v1,"+wrong+"  "+h.Get("webhook-signature"))
	accept(t, v, &Request{Method: "POST", URI: "/", Header: h})
	h.Set("webhook-signature", strings.ReplaceAll(h.Get("webhook-signature"), "v1,", "v2,"))
	refuse(t, v, &Request{Method: "POST", URI: "/", Header: h}, ErrUnsigned)
}

func TestResultNamesTheSecretThatMatched(t *testing.T) {
	v := custom(t, Scheme{}, secrets("new", "old"))
	for i, secret := range []string{"new", "old"} {
		if res := accept(t, v, post("{}", "X-Sig: "+sign(secret, "{}"))); res.Secret != i {
			t.Errorf("%s matched as secret %d", secret, res.Secret)
		}
	}
	both := post("{}", "X-Sig: "+sign("old", "{}")+","+sign("new", "{}"))
	if res := accept(t, v, both); res.Secret != 0 {
		t.Errorf("first secret in the configuration should count, got %d", res.Secret)
	}
}

func TestExpiredSecretNoLongerCounts(t *testing.T) {
	v := custom(t, Scheme{}, func(c *Config) {
		c.Secrets = []Secret{{Value: "new"}, {Value: "old", Until: noon}}
	})
	r := post("{}", "X-Sig: "+sign("old", "{}"))
	if _, err := v.Verify(r, noon.Add(-time.Nanosecond)); err != nil {
		t.Errorf("before the end: %v", err)
	}
	refuse(t, v, r, ErrForged)
}

func TestSignedIDIsTakenExactly(t *testing.T) {
	v := custom(t, Scheme{Payload: "id:{id};ts:{timestamp};{body}", Timestamp: Timestamp{Field: "ts"}, Labels: []string{"v1"}},
		eventID(IDSource{FromQuery, "data.id"}))
	r := post("{}", "X-Sig: ts=1767225600,v1="+sign(testSecret, "id:ORDER-aB9;ts:1767225600;{}"))
	r.URI = "/hook?type=x&data.id=ORDER-aB9"
	if id := idOf(t, v, r); id.Key != "ORDER-aB9" {
		t.Errorf("got %q", id.Key)
	}
	r.URI = "/hook?data.id=order-ab9"
	refuse(t, v, r, ErrForged)
	if !v.IDSigned() {
		t.Error("the id is in the payload")
	}
}

func TestSignedIDHeaderMustBeThereOnce(t *testing.T) {
	v := custom(t, Scheme{Payload: "{id}.{body}"})
	sig := "X-Sig: " + sign(testSecret, "a.{}")
	accept(t, v, post("{}", sig, "X-Id: a"))
	accept(t, v, post("{}", sig, "X-Id: a", "X-Id: a"))
	refuse(t, v, post("{}", sig), ErrMissingID)
	refuse(t, v, post("{}", sig, "X-Id:  "), ErrMissingID)
	refuse(t, v, post("{}", sig, "X-Id: a", "X-Id: b"), ErrAmbiguousID)
}

func TestMethodIsSigned(t *testing.T) {
	v := custom(t, Scheme{Payload: "{http.request.method}\n{body}"})
	r := post("{}", "X-Id: 1", "X-Sig: "+sign(testSecret, "POST\n{}"))
	accept(t, v, r)
	r.Method = "PUT"
	refuse(t, v, r, ErrForged)
}

func TestLongLiteralsAndIdsAreSignedInFull(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	v := custom(t, Scheme{Payload: long + "{id}{body}"})
	accept(t, v, post("{}", "X-Id: "+long, "X-Sig: "+sign(testSecret, long+long+"{}")))
}

func TestSignedDigestNamesTheSignedBytes(t *testing.T) {
	v := preset(t, "stableops", testSecret)
	request := func(id string, at time.Time) (*Request, Result) {
		r := post("{}", "X-Event-Id: "+id, "X-Product-Signature: "+paymosHeader(testSecret, at, "{}"))
		return r, accept(t, v, r)
	}
	digest := v.SignedDigest(request("evt_1", noon))
	if want := sha256.Sum256([]byte("1767225600.{}")); digest != want {
		t.Errorf("got %x, want %x", digest, want)
	}
	if digest != v.SignedDigest(request("evt_other", noon)) {
		t.Error("an unsigned id changed the digest")
	}
	if digest == v.SignedDigest(request("evt_1", noon.Add(time.Second))) {
		t.Error("another timestamp left the digest unchanged")
	}
}

func TestVerifierServesManyAtOnce(t *testing.T) {
	v := custom(t, Scheme{}, secrets("a", "b"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				body := fmt.Sprint(i, j)
				if _, err := v.Verify(post(body, "X-Sig: "+sign("b", body)), noon); err != nil {
					t.Error(err)
				}
				if _, err := v.Verify(post(body, "X-Sig: "+sign("c", body)), noon); err == nil {
					t.Error("forged request passed")
				}
			}
		})
	}
	wg.Wait()
}

func TestVerifyAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops pooled values")
	}
	v := preset(t, "paymos", testSecret)
	r := post(payBody, "X-Webhook-Signature: "+paymosHeader(testSecret, noon, payBody))
	n := testing.AllocsPerRun(1000, func() { v.Verify(r, noon) })
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestErrorsRevealNothingOfTheRequest(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	mac := sign("wrong", payBody)
	for _, header := range []string{
		"t=1767225600,v1=" + mac, "t=17672256009999,v1=" + mac, "t=1,t=2,v1=" + mac, "v1=" + mac, "v1=" + mac + "00",
	} {
		_, err := v.Verify(post(payBody, "X-Webhook-Signature: "+header), noon)
		if err == nil || strings.Contains(err.Error(), mac) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%v", err)
		}
	}
}
