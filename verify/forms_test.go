package verify

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"testing"
	"time"
)

// formConfig is a route for one of the senders that sign in a form of their own.
func formConfig(sender, publicURL, secret string) Config {
	return Config{Sender: sender, PublicURL: publicURL, Secrets: []Secret{{Value: secret}}}
}

const (
	hooks    = "https://hooks.example.test"
	twilioID = "SM0123456789abcdef0123456789abcdef"
	sms      = "MessageSid=" + twilioID + "&From=%2B14158675309&To=%2B18005551212&Body=a%2Bb+%26+c%3Dd+caf%C3%A9&NumMedia=0"
	adyenKey = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
)

// twilioSigned is the test's own signature over a text.
func twilioSigned(secret, signed string) string {
	m := hmac.New(sha1.New, []byte(secret))
	m.Write([]byte(signed))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

func twilioRequest(uri, body, signed string) *Request {
	r := post(body, "X-Twilio-Signature: "+twilioSigned("token", signed))
	r.URI = uri
	return r
}

// TestTwilioSignsWithOrWithoutThePort: whichever the configured URL has.
func TestTwilioSignsWithOrWithoutThePort(t *testing.T) {
	for _, c := range []struct {
		public string
		signed []string
	}{
		{hooks + "/sms", []string{hooks + "/sms", hooks + ":443/sms"}},
		{"http://h/sms", []string{"http://h/sms", "http://h:80/sms"}},
		{"https://h:8443/sms", []string{"https://h:8443/sms", "https://h/sms"}},
		{"https://[::1]/sms", []string{"https://[::1]/sms", "https://[::1]:443/sms"}},
		{"https://[::1]:8443/sms?a=1", []string{"https://[::1]:8443/sms?a=1", "https://[::1]/sms?a=1"}},
		{hooks, []string{hooks + "/sms", hooks + ":443/sms"}},
	} {
		v := mustNew(t, formConfig("twilio", c.public, "token"))
		for _, signed := range c.signed {
			accept(t, v, twilioRequest("/sms", "a=b", signed+"ab"))
		}
		for _, signed := range []string{"https://evil.test/sms", hooks + ":8080/sms", "https://h:443/sms", strings.ToUpper(c.signed[0])} {
			refuse(t, v, twilioRequest("/sms", "a=b", signed+"ab"), ErrForged)
		}
	}
	// The SDK's own: made over the URL with :443.
	v := mustNew(t, formConfig("twilio", hooks, "edge_auth_token_12345"))
	r := post(sms, "X-Twilio-Signature: QJHwMZnteG1R9iu5z/C3SWR6MAg=")
	r.URI = "/twilio/sms?tenant=7&lang=fr"
	accept(t, v, r)
}

func TestTwilioNeedsThePublicURL(t *testing.T) {
	refused(t, formConfig("twilio", "", "token"), "needs public_url")
}

func TestTwilioSortsWhatTheFormSays(t *testing.T) {
	v := mustNew(t, formConfig("twilio", hooks, "token"))
	for body, signed := range map[string]string{
		"":                              "",
		"b=2&a=1":                       "a1b2",
		"a=2&a=1&a=2":                   "a1a2",
		"a=&b":                          "ab",
		"&&a=1&":                        "a1",
		"a=%E2%98%83+x":                 "a\u2603 x",
		"a=%zz%4&b=100%":                "a%zz%4b100%",
		"%61=b=c":                       "ab=c",
		"Reason=1&ReasonConference=2":   "Reason1ReasonConference2",
		"a;b=1":                         "a;b1",
		"\xff=\x00":                     "\xff\x00",
		"A=1&a=2&B=3":                   "A1B3a2",
		strings.Repeat("a=1&", 999):     "a1",
		"a=" + strings.Repeat("x", 1e6): "a" + strings.Repeat("x", 1e6),
	} {
		accept(t, v, twilioRequest("/", body, hooks+"/"+signed))
		refuse(t, v, twilioRequest("/", body, hooks+"/"+signed+"x"), ErrForged)
	}
}

// A stranger's form must not cost more to sort than to send.
func TestTwilioFormsOutOfBoundsAreRefused(t *testing.T) {
	v := mustNew(t, formConfig("twilio", hooks, "token"))
	refuse(t, v, twilioRequest("/", strings.Repeat("a=1&", 1000), hooks+"/a1"), ErrForged)
	long := "a=" + strings.Repeat("x", maxForm)
	refuse(t, v, twilioRequest("/", long, hooks+"/a"+long[2:]), ErrForged)
}

func TestTwilioBodiesThatAreNoFormAreSignedByTheirHash(t *testing.T) {
	v := mustNew(t, formConfig("twilio", hooks, "token"))
	body := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	sum := sha256.Sum256([]byte(body))
	uri := "/json?x=1&bodySHA256=" + hex.EncodeToString(sum[:])
	accept(t, v, twilioRequest(uri, body, hooks+uri))
	refuse(t, v, twilioRequest(uri, body+" ", hooks+uri), ErrForged)
	refuse(t, v, twilioRequest(uri, "", hooks+uri), ErrForged)
	refuse(t, v, twilioRequest(uri, body, hooks+strings.Replace(uri, "x=1", "x=2", 1)), ErrForged)
	for _, changed := range []string{strings.ToUpper(uri), "/json?x=1&bodySHA256=", "/json?x=1&bodySHA256", "/json?bodySHA256=" + strings.Repeat("0", 64) + "&" + uri[6:]} {
		refuse(t, v, twilioRequest(changed, body, hooks+changed), ErrForged)
	}
}

// The hash of the body counts only in a URL that is signed.
func TestTwilioHashOutsideOfTheSignedURLProvesNothing(t *testing.T) {
	public := hooks + "/cb?tenant=7"
	v := mustNew(t, formConfig("twilio", public, "token"))
	captured := twilioRequest("/cb?tenant=7", "", public)
	accept(t, v, captured)
	body := `{"evil":true}`
	sum := sha256.Sum256([]byte(body))
	r := twilioRequest("/cb?bodySHA256="+hex.EncodeToString(sum[:]), body, public)
	refuse(t, v, r, ErrForged)
}

// TestTwilioFormInAnotherOrderIsTheSameBody: the signature fits any order, so a
// stranger could make a new event of a copy.
func TestTwilioFormInAnotherOrderIsTheSameBody(t *testing.T) {
	v := mustNew(t, formConfig("twilio", hooks, "token"))
	type sums struct {
		digest   [32]byte
		checksum uint32
	}
	of := func(r *Request) sums {
		res := accept(t, v, r)
		return sums{v.BodyDigest(r, res), v.BodyChecksum(r, res)}
	}
	sent := func(body string) sums {
		return of(twilioRequest("/sms", body, hooks+"/smsMessageSidSM1MessageStatussent"))
	}
	one := sent("MessageSid=SM1&MessageStatus=sent")
	for _, body := range []string{"MessageStatus=sent&MessageSid=SM1", "MessageSid=SM1&MessageStatus=sent&", "%4dessageSid=SM1&MessageStatus=sent&MessageSid=SM1"} {
		if sent(body) != one {
			t.Errorf("%s is another body", body)
		}
	}
	other := of(twilioRequest("/sms", "MessageSid=SM1&MessageStatus=delivered", hooks+"/smsMessageSidSM1MessageStatusdelivered"))
	if other.digest == one.digest || other.checksum == one.checksum {
		t.Error("another status is the same body")
	}
	github := preset(t, "github", testSecret)
	if r := post("{}"); github.BodyDigest(r, Result{}) != sha256.Sum256(r.Body) {
		t.Error("elsewhere it is the hash of the body")
	}
	if r := post("123456789"); github.BodyChecksum(r, Result{}) != 0xe3069283 { // the check value of CRC-32C
		t.Error("elsewhere it is the checksum of the body")
	}
}

func TestFormParameterIsAnEventID(t *testing.T) {
	v := custom(t, Scheme{}, eventID(IDSource{FromForm, "id"}))
	if id := idOf(t, v, signed("x=1&id=a%2Bb")); id.Key != "a+b" || !v.IDSigned() {
		t.Errorf("got %+v", id)
	}
	for body, kind := range map[string]*Error{
		"x=1": ErrMissingID, "id=": ErrMissingID, "id=+": ErrMissingID, "": ErrMissingID,
		"id=a&id=b": ErrAmbiguousID, "id=%zz": ErrBadID,
	} {
		if e := noID(t, v, signed(body), kind); !strings.Contains(e.Detail, "form parameter id") {
			t.Error(e)
		}
	}
}

// adyenNotification has one item for each signature.
func adyenNotification(references ...string) []byte {
	var items []string
	for _, r := range references {
		items = append(items, fmt.Sprintf(`{"NotificationRequestItem":{"pspReference":%q,"merchantAccountCode":"M","amount":{"currency":"EUR","value":1130},"eventCode":"AUTHORISATION","success":true,"originalReference":null,"additionalData":{"hmacSignature":""}}}`, r))
	}
	return []byte(`{"live":"false","notificationItems":[` + strings.Join(items, ",") + `]}`)
}

func adyenSigned(t testing.TB, v *Verifier, references ...string) *Request {
	body, err := v.SignBody(SignInput{Body: adyenNotification(references...)})
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Method: "POST", URI: "/", Body: body}
}

func TestAdyenWantsEveryItemSigned(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	r := adyenSigned(t, v, "p1", "p2", "p3")
	ids, err := v.EventIDs(r, accept(t, v, r))
	if err != nil || len(ids) != 3 || !strings.HasPrefix(ids[2].Text, "p3") {
		t.Errorf("got %v, %v", ids, err)
	}
	for _, change := range [][2]string{
		{`"pspReference":"p2"`, `"pspReference":"p9"`}, {`"value":1130`, `"value":9130`}, {`"success":true`, `"success":false`},
		{`"merchantAccountCode":"M"`, `"merchantAccountCode":"N"`}, {`"originalReference":null`, `"originalReference":"x"`},
		{`"pspReference":"p3"`, `"pspReference":"p3","pspReference":"p3"`}, {`"value":1130`, `"value":[1130]`},
	} {
		changed := *r
		changed.Body = bytes.Replace(r.Body, []byte(change[0]), []byte(change[1]), 1)
		refuse(t, v, &changed, ErrForged)
	}
	// What is not signed may change, and a missing field is an empty one.
	changed := *r
	changed.Body = bytes.Replace(r.Body, []byte(`"originalReference":null,`), []byte(`"reason":"x","originalReference":"",`), 1)
	accept(t, v, &changed)
	swapped := adyenSigned(t, v, "p1", "p2")
	signatures := strings.Split(string(swapped.Body), `"hmacSignature":"`)
	a, b := signatures[1][:44], signatures[2][:44]
	swapped.Body = []byte(strings.NewReplacer(a, b, b, a).Replace(string(swapped.Body)))
	refuse(t, v, swapped, ErrForged)
}

func TestAdyenBodiesWithoutSignaturesAreUnsigned(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	for _, body := range []string{
		"", "x", "[]", "{}", "null", `{"notificationItems":null}`, `{"notificationItems":{}}`, `{"notificationItems":[]}`, `{"notificationItems":[1]}`,
		`{"notificationItems":[{}]}`, `{"notificationItems":[{"NotificationRequestItem":null}]}`, `{"notificationItems":[{"NotificationRequestItem":[]}]}`,
		string(adyenNotification("p1")), strings.Replace(string(adyenNotification("p1")), `""`, `1`, 1),
		strings.Replace(string(adyenNotification("p1")), `""`, `"`+strings.Repeat("A", 44)+`"`, 1),
		strings.Replace(string(adyenNotification("p1")), `"hmacSignature":""`, `"hmacSignature":"","hmacSignature":""`, 1),
	} {
		refuse(t, v, post(body), ErrUnsigned)
	}
	signed := adyenSigned(t, v, "p1")
	signed.Body = bytes.Replace(signed.Body, []byte(`[{`), []byte(`[{},{`), 1)
	refuse(t, v, signed, ErrUnsigned)
}

// Fields are signed with colons between them, so that a field that holds one could
// be moved: the same signature would be that of another id.
func TestFieldsOfAdyenCannotBeMoved(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	item := func(psp, original, account, reference string) string {
		fields := fmt.Sprintf(`"pspReference":%q,"originalReference":%q,"merchantAccountCode":%q,"merchantReference":%q,"amount":{"value":5,"currency":"EUR"},"eventCode":"CAPTURE","success":"true"`,
			psp, original, account, reference)
		m := hmac.New(sha256.New, fromHex(adyenKey))
		m.Write([]byte(psp + ":" + original + ":" + account + ":" + reference + ":5:EUR:CAPTURE:true"))
		return `{"notificationItems":[{"NotificationRequestItem":{` + fields + `,"additionalData":{"hmacSignature":"` + base64.StdEncoding.EncodeToString(m.Sum(nil)) + `"}}}]}`
	}
	accept(t, v, post(item("P", "", "Shop", "order:1:2")))
	accept(t, v, post(item("P", "", "Shop", `a\b`)))
	for _, moved := range []string{item("P:", "Shop", "order", "1:2"), item("P", ":Shop", "order", "1:2"), item("P", "", "Shop:order", "1:2")} {
		refuse(t, v, post(moved), ErrForged)
	}
}

// Receivers disagree about which of two members counts: neither is taken, and the
// field does not count as missing.
func TestRepeatedFieldsOfAdyenAreRefused(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	for _, repeated := range []string{`"originalReference":"a","originalReference":"b",`, `"merchantReference":{"a":1},`} {
		m := hmac.New(sha256.New, fromHex(adyenKey))
		m.Write([]byte("P::::::C:"))
		signature := base64.StdEncoding.EncodeToString(m.Sum(nil))
		item := func(more string) string {
			return `{"notificationItems":[{"NotificationRequestItem":{` + more + `"pspReference":"P","eventCode":"C","additionalData":{"hmacSignature":"` + signature + `"}}}]}`
		}
		accept(t, v, post(item("")))
		refuse(t, v, post(item(repeated)), ErrForged)
	}
}

func TestExpiredSecretsNoLongerCountForForms(t *testing.T) {
	for _, end := range []time.Time{noon, noon.Add(-time.Hour)} {
		v := mustNew(t, Config{Sender: "twilio", PublicURL: hooks, Secrets: []Secret{{Value: "new"}, {Value: "token", Until: end}}})
		refuse(t, v, twilioRequest("/sms", "a=b", hooks+"/smsab"), ErrForged)
	}
	v := mustNew(t, Config{Sender: "twilio", PublicURL: hooks, Secrets: []Secret{{Value: "new"}, {Value: "token", Until: noon.Add(time.Second)}}})
	accept(t, v, twilioRequest("/sms", "a=b", hooks+"/smsab"))
}

func TestAdyenItemsAreBounded(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	one := adyenSigned(t, v, "p1").Body
	start, end := bytes.IndexByte(one, '[')+1, bytes.IndexByte(one, ']')
	many := func(n int) *Request {
		items := slices.Repeat([]string{string(one[start:end])}, n)
		return post(string(one[:start]) + strings.Join(items, ",") + "]}")
	}
	accept(t, v, many(MaxBatch))
	refuse(t, v, many(MaxBatch+1), ErrForged)
}

func TestAdyenSignsFieldsAndNotTheBody(t *testing.T) {
	v := mustNew(t, formConfig("adyen", "", adyenKey))
	if v.BodySigned() || !v.IDSigned() || v.HasTimestamp() || !v.Batch() {
		t.Errorf("body %v, id %v, time %v, batch %v", v.BodySigned(), v.IDSigned(), v.HasTimestamp(), v.Batch())
	}
	for _, path := range []string{"notificationItems[*].NotificationRequestItem.reason", "notificationItems[*].pspReference", "other[*].NotificationRequestItem.pspReference", "live"} {
		c := formConfig("adyen", "", adyenKey)
		c.EventID = []IDSource{{FromJSON, path}}
		if mustNew(t, c).IDSigned() {
			t.Errorf("%s is not signed", path)
		}
	}
	refused(t, formConfig("adyen", "", "no hex"), "is not hex")
}

const mailgunKey = "mg-edge-key"

func mailgunBody(stamp any, token, signature, rest string) string {
	return fmt.Sprintf(`{"signature":{"timestamp":%#v,"token":%q,"signature":%q%s},"event-data":{"id":"e1"}}`, stamp, token, signature, rest)
}

func TestMailgunSignsTimestampAndToken(t *testing.T) {
	v := mustNew(t, formConfig("mailgun", "", mailgunKey))
	good := sign(mailgunKey, "1767225600tok")
	for _, body := range []string{
		mailgunBody("1767225600", "tok", good, ""),
		mailgunBody(1767225600, "tok", good, ""),
		mailgunBody("1767225600", "tok", strings.ToUpper(good), ""),
		mailgunBody("1767225600", "tok", sign("subaccount", "1767225600tok"), `,"parent-signature":"`+good+`"`),
		mailgunBody("1767225600", "tok", good, `,"parent-signature":"x"`),
	} {
		if res := accept(t, v, post(body)); !res.Timestamp.Equal(noon) {
			t.Errorf("%s: %v", body, res.Timestamp)
		}
	}
	for _, body := range []string{
		mailgunBody("1767225601", "tok", good, ""), mailgunBody("1767225600", "tok2", good, ""), mailgunBody("1767225600", "tok", sign("x", ""), ""),
		mailgunBody("176722560", "0tok", sign("x", "1767225600tok"), `,"parent-signature":"`+sign("y", "1767225600tok")+`"`),
	} {
		refuse(t, v, post(body), ErrForged)
	}
	refuse(t, v, post(mailgunBody("1767150000", "tok", sign(mailgunKey, "1767150000tok"), "")), ErrStale)
	// Timestamp and token have nothing between them: a digit may change sides, and
	// makes the time absurd.
	refuse(t, v, post(mailgunBody("176722560", "0tok", good, "")), ErrStale)
	for _, body := range []string{
		"", "{", "[]", "null", "{}", `{"signature":null}`, `{"signature":"x"}`, mailgunBody("", "tok", good, ""), mailgunBody("1767225600", "", good, ""),
		mailgunBody("1767225600", "tok", "", ""), mailgunBody("1767225600", "tok", good, `,"token":"tok"`), `{"signature":{},` + mailgunBody("1767225600", "tok", good, "")[1:],
	} {
		refuse(t, v, post(body), ErrUnsigned)
	}
}

func TestMailgunSignsNothingOfTheEvent(t *testing.T) {
	v := mustNew(t, formConfig("mailgun", "", mailgunKey))
	if v.BodySigned() || v.IDSigned() || !v.HasTimestamp() || v.Tolerance() != 9*time.Hour {
		t.Errorf("body %v, id %v, time %v, tolerance %v", v.BodySigned(), v.IDSigned(), v.HasTimestamp(), v.Tolerance())
	}
	body := mailgunBody("1767225600", "tok", sign(mailgunKey, "1767225600tok"), "")
	r, evil := post(body), post(strings.Replace(body, "e1", "e2", 1))
	res := accept(t, v, r)
	if v.SignedDigest(r, res) != v.SignedDigest(evil, accept(t, v, evil)) || v.BodyDigest(r, res) == v.BodyDigest(evil, res) {
		t.Error("a guard could not tell that the signature is the same and the body another")
	}
	again := post(mailgunBody("1767225600", "tok2", sign(mailgunKey, "1767225600tok2"), ""))
	if v.SignedDigest(r, res) == v.SignedDigest(again, accept(t, v, again)) {
		t.Error("another token has the same digest")
	}
}

// TestSignedBodiesPass: what SignBody and Sign make is what Verify accepts.
// Signatures in the body prove nothing of what a content coding makes of it.
func TestIDsOutsideOfTheSignedBodyAreRefused(t *testing.T) {
	for _, name := range []string{"adyen", "mailgun"} {
		v := sender(t, name)
		body, err := v.SignBody(SignInput{Body: SampleBody(name, "e1"), Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		r := post(string(body))
		res := accept(t, v, r)
		for content, ok := range map[string]bool{string(body): true, string(SampleBody(name, "e2")): false, "": false} {
			r.Content = []byte(content)
			if ids, err := v.EventIDs(r, res); (err == nil) != ok || len(ids) > 0 != ok {
				t.Errorf("%s: %v, %v", name, ids, err)
			}
		}
	}
}

// counted is a hash that counts what it is asked for.
type counted struct {
	hash.Hash
	sums *int
}

func (c counted) Sum(b []byte) []byte { *c.sums++; return c.Hash.Sum(b) }

// A stranger may write many signatures; they must not multiply the work on a body.
func TestManySignaturesCostOneHMAC(t *testing.T) {
	v := mustNew(t, formConfig("twilio", "https://h/sms", "token"))
	sums := 0
	m := &mac{size: sha1.Size}
	m.pool.New = func() any { return &digester{Hash: counted{hmac.New(sha1.New, []byte("token")), &sums}} }
	v.schemes[0].keys[0].mac = m
	wrong := strings.Repeat(twilioSigned("token", "other")+",", maxCandidates-1)
	r := post("a=b", "X-Twilio-Signature: "+wrong+twilioSigned("token", "https://h:443/smsab"))
	accept(t, v, r)
	if sums != 2 { // with the port and without
		t.Errorf("%d HMACs are made", sums)
	}
}

func TestSignedBodiesPass(t *testing.T) {
	for sender, c := range map[string]struct{ secret, body string }{
		"adyen":   {adyenKey, string(adyenNotification("p1", "p2"))},
		"mailgun": {mailgunKey, `{"event-data":{"id":"e1"},"signature":{}}`},
		"twilio":  {"token", sms},
		"github":  {"token", "{}"},
	} {
		v := mustNew(t, formConfig(sender, hooks, c.secret))
		in := SignInput{Body: []byte(c.body), URL: hooks + "/cb?a=1", ID: "e1", Now: noon}
		var err error
		if in.Body, err = v.SignBody(in); err != nil {
			t.Fatalf("%s: %v", sender, err)
		}
		h, err := v.Sign(in)
		if err != nil {
			t.Fatalf("%s: %v", sender, err)
		}
		accept(t, v, &Request{Method: "POST", URI: "/cb?a=1", Header: h, Body: in.Body})
	}
	for sender, bodies := range map[string][]string{
		"adyen":   {"", "{}", `{"notificationItems":{}}`, `{"notificationItems":[{}]}`, `{"notificationItems":[{"NotificationRequestItem":{}}]}`},
		"mailgun": {"", "{}", "[]"},
	} {
		v := mustNew(t, formConfig(sender, hooks, adyenKey))
		for _, body := range bodies {
			if _, err := v.SignBody(SignInput{Body: []byte(body)}); err == nil {
				t.Errorf("%s: %s has no place for a signature", sender, body)
			}
		}
	}
}

func FuzzTwilio(f *testing.F) {
	f.Add(sms, "/sms?tenant=7", "https://h")
	f.Add("a=%zz&&b", "/?bodySHA256=00", "https://h:443/x?y=1")
	f.Add("", "", "http://[::1]")
	f.Fuzz(func(t *testing.T, body, uri, public string) {
		v, err := New(formConfig("twilio", public, "token"))
		if err != nil {
			return
		}
		head, tail := v.url.of(uri)
		for _, u := range withAndWithoutPort(head + tail) {
			parameters, err := twilioParameters(head+tail, []byte(body))
			if err != nil {
				continue
			}
			r := twilioRequest(uri, body, u+string(parameters))
			if _, err := v.Verify(r, noon); err != nil {
				t.Errorf("%q %q: %v", u, body, err)
			}
		}
		r := twilioRequest(uri, body, "other")
		if _, err := v.Verify(r, noon); err == nil || Reason(err) == "" {
			t.Errorf("accepted %q: %v", body, err)
		}
	})
}

// No body may pass that is not signed, or make the forms in bodies panic. One
// that can be signed passes then.
func FuzzBodyForms(f *testing.F) {
	f.Add([]byte(mailgunBody("1767225600", "tok", sign("x", ""), "")))
	f.Add(adyenNotification("p1", "p2"))
	f.Add([]byte(`{"signature":{},"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":1}}}]}`))
	var verifiers []*Verifier
	for _, sender := range []string{"mailgun", "adyen"} {
		verifiers = append(verifiers, mustNew(f, formConfig(sender, "", adyenKey)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, v := range verifiers {
			if _, err := v.Verify(&Request{Body: body}, noon); err == nil || Reason(err) == "" {
				t.Fatalf("accepted %q: %v", body, err)
			}
			signed, err := v.SignBody(SignInput{Body: body, Now: noon})
			if err != nil {
				continue
			}
			if _, err := v.Verify(&Request{Body: signed}, noon); err != nil && Reason(err) != ErrUnsigned.Reason {
				t.Errorf("%q became %q: %v", body, signed, err)
			}
		}
	})
}
