package explain

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

const (
	secret = "s3cret-of-the-shop"
	body   = `{"event_id":"evt_1","type":"invoice.paid","data":{"name":"Zoë","url":"https://a.test/b"}}`
)

var noon = time.Unix(1767225600, 0)

// delivery is what a sender signed, and how the route is set up for it.
type delivery struct {
	signer, route verify.Config
	body          string
	id, url       string
}

func sender(name string, secrets ...string) verify.Config {
	c := verify.Config{Sender: name}
	for _, s := range secrets {
		c.Secrets = append(c.Secrets, verify.Secret{Value: s})
	}
	return c
}

func withoutID(name string, secrets ...string) verify.Config {
	c := sender(name, secrets...)
	c.EventID = []verify.IDSource{{Kind: verify.NoID}}
	return c
}

func custom(s verify.Scheme, secrets ...string) verify.Config {
	c := sender("", secrets...)
	c.Scheme = &s
	c.EventID = []verify.IDSource{{Kind: verify.FromBodySHA256}}
	return c
}

// input signs the delivery and lets change spoil it.
func (d delivery) input(t *testing.T, change func(*Input)) Input {
	t.Helper()
	v, err := verify.New(d.signer)
	if err != nil {
		t.Fatal(err)
	}
	if d.id == "" {
		d.id = "evt_1"
	}
	h, err := v.Sign(verify.SignInput{Body: []byte(d.body), ID: d.id, URL: d.url, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	r := &verify.Request{Method: "POST", URI: "/hook", Header: h, Body: []byte(d.body)}
	in := Input{Config: d.route, Request: r, Now: noon}
	if change != nil {
		change(&in)
	}
	return in
}

func paymos() delivery {
	return delivery{signer: sender("paymos", secret), route: sender("paymos", secret), body: body}
}

func setBody(b string) func(*Input) { return func(in *Input) { in.Request.Body = []byte(b) } }

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func TestEveryUsualMistakeIsNamed(t *testing.T) {
	raw := []byte("0123456789abcdef")
	encoded := "whsec_" + base64.StdEncoding.EncodeToString(raw)
	withRoute := func(c verify.Config) delivery {
		return delivery{signer: sender("paymos", secret), route: c, body: body}
	}
	spaced := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(body)
	signedAs := func(s string) delivery { d := paymos(); d.body = s; return d }
	stamped := verify.Scheme{Headers: []string{"X-Sig"}, Payload: "{timestamp}.{body}", Timestamp: verify.Timestamp{Header: "X-Time"}}
	changed := func(change func(*verify.Scheme)) verify.Config {
		s := stamped
		change(&s)
		return custom(s, secret)
	}
	own := func(c verify.Config) delivery { return delivery{signer: custom(stamped, secret), route: c, body: body} }
	bare := verify.Scheme{Headers: []string{"X-Sig"}, Separator: " "}
	labelled := verify.Scheme{Headers: []string{"X-Sig"}, Separator: " ", Labels: []string{"v1"}}
	unlisted := func(s verify.Scheme) verify.Scheme { s.Separator = ""; return s }
	// signatures writes a wrong signature and the right one as a list.
	signatures := func(format string) func(*Input) {
		return func(in *Input) {
			right := strings.TrimPrefix(in.Request.Header.Get("X-Sig"), "v1,")
			in.Request.Header.Set("X-Sig", fmt.Sprintf(format, strings.Repeat("0", len(right)), right))
		}
	}
	for name, c := range map[string]struct {
		delivery
		change func(*Input)
		code   string
	}{
		"line end added":            {paymos(), setBody(body + "\n"), "body-line-end"},
		"CR LF added":               {paymos(), setBody(body + "\r\n"), "body-line-end"},
		"line end lost":             {signedAs(body + "\n"), setBody(body), "body-line-end"},
		"line ends converted":       {signedAs("{\"event_id\":\n\"1\"}"), setBody("{\"event_id\":\r\n\"1\"}"), "body-line-ends"},
		"line ends converted back":  {signedAs("{\"event_id\":\r\n\"1\"}"), setBody("{\"event_id\":\n\"1\"}"), "body-line-ends"},
		"byte order mark added":     {paymos(), setBody("\ufeff" + body), "body-byte-order-mark"},
		"compressed":                {paymos(), setBody(gzipped(body)), "body-decompressed"},
		"chunks kept":               {paymos(), setBody(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)), "body-chunked"},
		"spaces added":              {paymos(), setBody(spaced), "body-json-spacing"},
		"spaces lost":               {signedAs(spaced), setBody(body), "body-json-spacing"},
		"escapes lost":              {signedAs(strings.ReplaceAll(body, "ë", `\u00eb`)), setBody(body), "body-json-escapes"},
		"escapes added":             {paymos(), setBody(strings.ReplaceAll(body, "ë", `\u00eb`)), "body-json-escapes"},
		"slashes escaped":           {paymos(), setBody(strings.ReplaceAll(body, "/", `\/`)), "body-json-escapes"},
		"slashes no longer escaped": {signedAs(strings.ReplaceAll(body, "/", `\/`)), setBody(body), "body-json-escapes"},
		"members sorted":            {signedAs(`{"a":1,"b":2.0}`), setBody(`{"b":2.0,"a":1}`), "body-json-order"},
		"Latin 1":                   {paymos(), setBody(strings.ReplaceAll(body, "ë", "\xeb")), "body-charset"},
		"UTF-8 of Latin 1":          {signedAs(strings.ReplaceAll(body, "ë", "\xeb")), setBody(body), "body-charset"},
		"more than announced": {paymos(), func(in *Input) {
			in.Request.Header.Set("Content-Length", fmt.Sprint(len(body)))
			in.Request.Body = []byte(body + " #")
		}, "body-length"},
		"Windows-1252":   {delivery{signer: sender("paymos", secret), route: sender("paymos", secret), body: `{"event_id":"1","in":"€"}`}, setBody("{\"event_id\":\"1\",\"in\":\"\x80\"}"), "body-charset"},
		"UTF-8 twice":    {signedAs(`{"event_id":"1","in":"É"}`), setBody("{\"event_id\":\"1\",\"in\":\"Ã‰\"}"), "body-charset"},
		"body consumed":  {signedAs(""), setBody(body), "body-empty"},
		"form parameter": {signedAs("{}"), setBody("payload=%7B%7D"), "body-form"},
		"previous secret": {withRoute(sender("paymos", "another")), func(in *Input) {
			in.Others = []OtherSecret{{Place: `the route "shop"`, Secret: verify.Secret{Value: secret}}}
		}, "secret-elsewhere"},
		"expired secret":             {withRoute(verify.Config{Sender: "paymos", Secrets: []verify.Secret{{Value: "x"}, {Value: secret, Until: noon}}}), nil, "secret-expired"},
		"white space in the secret":  {withRoute(sender("paymos", secret+"\n")), nil, "secret-white-space"},
		"quotes around the secret":   {withRoute(sender("paymos", `"`+secret+`"`)), nil, "secret-quotes"},
		"base64 taken for text":      {delivery{signer: sender("svix", encoded), route: verify.Config{Sender: "svix", SecretFormat: verify.Text, Secrets: []verify.Secret{{Value: encoded}}}, body: body}, nil, "secret-format"},
		"text taken for base64":      {delivery{signer: sender("paymos", encoded), route: verify.Config{Sender: "paymos", SecretFormat: verify.Base64, Secrets: []verify.Secret{{Value: encoded}}}, body: body}, nil, "secret-format"},
		"hex taken for text":         {delivery{signer: verify.Config{Sender: "paymos", SecretFormat: verify.Hex, Secrets: []verify.Secret{{Value: "30313233"}}}, route: sender("paymos", "30313233"), body: body}, nil, "secret-format"},
		"prefix of the secret lost":  {withRoute(sender("paymos", strings.TrimPrefix(secret, "whsec_"))), nil, ""},
		"other sender":               {withRoute(sender("github", secret)), nil, "sender"},
		"other algorithm":            {own(changed(func(s *verify.Scheme) { s.Algorithm = verify.SHA512 })), nil, "algorithm"},
		"other encoding":             {own(changed(func(s *verify.Scheme) { s.Encoding = verify.Base64 })), nil, "encoding"},
		"other payload":              {own(changed(func(s *verify.Scheme) { s.Payload = "{timestamp}{body}" })), nil, "payload"},
		"other header":               {own(changed(func(s *verify.Scheme) { s.Headers = []string{"X-Sign"} })), nil, "header"},
		"other timestamp header":     {own(changed(func(s *verify.Scheme) { s.Timestamp.Header = "X-When" })), nil, "timestamp"},
		"prefix that is not there":   {own(changed(func(s *verify.Scheme) { s.Prefix = "sha256=" })), nil, "prefix"},
		"prefix that is not known":   {delivery{signer: changed(func(s *verify.Scheme) { s.Prefix = "v9=" }), route: custom(stamped, secret), body: body}, nil, "prefix"},
		"list taken for one":         {delivery{signer: sender("stripe", secret), route: custom(verify.Scheme{Headers: []string{"Stripe-Signature"}, Separator: ";"}, secret), body: body}, nil, "sender"},
		"list of labels":             {delivery{signer: custom(labelled, secret), route: custom(unlisted(labelled), secret), body: body}, signatures("v1,%s v1,%s"), "separator"},
		"list of bare signatures":    {delivery{signer: custom(bare, secret), route: custom(unlisted(bare), secret), body: body}, signatures("%s %s"), "separator"},
		"sender without an id":       {delivery{signer: withoutID("zoom", secret), route: sender("stripe", secret), body: body}, nil, "sender"},
		"time behind the body":       {own(changed(func(s *verify.Scheme) { s.Payload = "{body}.{timestamp}" })), nil, "payload"},
		"secret and body":            {withRoute(sender("paymos", secret+" ")), setBody(body + "\n"), "body-line-end+secret-white-space"},
		"URL without its slash":      {delivery{signer: urlScheme("https://h.test"), route: urlScheme("https://h.test"), body: body, url: "https://h.test/hook/"}, nil, "url"},
		"URL without TLS":            {delivery{signer: urlScheme("https://h.test"), route: urlScheme("https://h.test"), body: body, url: "http://h.test/hook"}, nil, "url"},
		"URL without its query":      {delivery{signer: urlScheme("https://h.test"), route: urlScheme("https://h.test"), body: body, url: "https://h.test/hook"}, func(in *Input) { in.Request.URI = "/hook?a=b" }, "url"},
		"URL of the Host header":     {delivery{signer: urlScheme("https://h.test"), route: urlScheme("https://shop.test"), body: body, url: "https://h.test/hook"}, func(in *Input) { in.Request.Header.Set("Host", "h.test") }, "url"},
		"URL that is not given":      {delivery{signer: urlScheme("https://h.test"), route: urlScheme(""), body: body, url: "https://h.test/hook"}, func(in *Input) { in.Request.Header.Set("Host", "h.test") }, "url"},
		"URL with its standard port": {delivery{signer: urlScheme("https://h.test"), route: urlScheme("https://h.test"), body: body, url: "https://h.test:443/hook"}, nil, "url"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := Explain(c.input(t, c.change))
			if c.code == "" {
				if !rep.Verified {
					t.Errorf("not verified: %v", rep.Reason)
				}
				return
			}
			if rep.Verified || rep.Reason == nil {
				t.Fatal("it verifies")
			}
			var codes []string
			for _, f := range rep.Repairs {
				codes = append(codes, f.Code)
			}
			if len(codes) == 0 || codes[0] != c.code {
				t.Errorf("got %q after %d tries, want %q first", codes, rep.Tried, c.code)
			}
			for i, f := range rep.Repairs {
				if f.Text == "" || slices.Contains(rep.Repairs[:i], f) {
					t.Errorf("a repair that says nothing, or nothing new: %q", rep.Repairs)
				}
			}
		})
	}
}

func urlScheme(public string) verify.Config {
	c := custom(verify.Scheme{Headers: []string{"X-Sig"}, Payload: "{url}{body}"}, secret)
	c.PublicURL = public
	return c
}

func TestAWrongSecretHasNoRepair(t *testing.T) {
	d := paymos()
	d.route = sender("paymos", "another secret")
	rep := Explain(d.input(t, nil))
	if rep.Verified || len(rep.Repairs) > 0 || !errors.Is(rep.Reason, verify.ErrForged) {
		t.Errorf("%+v", rep)
	}
	if rep.Tried < 100 {
		t.Errorf("only %d combinations were tried", rep.Tried)
	}
}

func TestAGenuineDeliveryIsIdentified(t *testing.T) {
	d := paymos()
	d.route = sender("paymos", "other", secret)
	rep := Explain(d.input(t, nil))
	if !rep.Verified || rep.Secret != 1 || len(rep.EventIDs) != 1 || rep.EventIDs[0].Text != "evt_1" || !rep.Timestamp.Equal(noon) || rep.Reason != nil {
		t.Errorf("%+v", rep)
	}
	d.body = "{}"
	if rep := Explain(d.input(t, nil)); !rep.Verified || !errors.Is(rep.IDError, verify.ErrMissingID) {
		t.Errorf("%+v", rep)
	}
}

func TestAStaleDeliveryIsNotSearched(t *testing.T) {
	for text, change := range map[string]func(*Input){
		"4h0m0s old":    func(in *Input) { in.Now = noon.Add(4 * time.Hour) },
		"in the future": func(in *Input) { in.Now = noon.Add(-time.Hour) },
		"milliseconds": func(in *Input) {
			s := verify.Scheme{Headers: []string{"X-Webhook-Signature"}, Labels: []string{"v1"}, Payload: "{timestamp}.{body}", Timestamp: verify.Timestamp{Field: "t", Unit: verify.UnixMillis}}
			in.Request.Header, _ = must(verify.New(custom(s, secret))).Sign(verify.SignInput{Body: []byte(body), Now: noon})
		},
	} {
		rep := Explain(paymos().input(t, change))
		if !errors.Is(rep.Reason, verify.ErrStale) || !strings.Contains(rep.Reason.Error(), text) || len(rep.Repairs) > 0 {
			t.Errorf("%s: %+v", text, rep)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCluesTellWhatIsOddAtFirstSight(t *testing.T) {
	for code, change := range map[string]func(*Input){
		"header-missing":    func(in *Input) { in.Request.Header = http.Header{} },
		"header-other":      func(in *Input) { in.Request.Header = http.Header{"X-Hub-Signature-256": {"sha256=00"}} },
		"body-decompressed": func(in *Input) { in.Request.Header.Set("Content-Encoding", "gzip") },
		"body-compressed": func(in *Input) {
			in.Request.Header.Set("Content-Encoding", "gzip")
			in.Request.Body = []byte(gzipped(body))
		},
		"timestamp-missing":    func(in *Input) { in.Request.Header.Set("X-Webhook-Signature", "v1=00") },
		"timestamp-unreadable": func(in *Input) { in.Request.Header.Set("X-Webhook-Signature", "t=noon,v1=00") },
		"timestamp-unit":       func(in *Input) { in.Request.Header.Set("X-Webhook-Signature", "t=1767225600000,v1=00") },
		"timestamp-age":        func(in *Input) { in.Request.Header.Set("X-Webhook-Signature", "t=1767220000,v1=00") },
		"body-length":          func(in *Input) { in.Request.Header.Set("Content-Length", "3") },
	} {
		found := false
		for _, c := range Clues(paymos().input(t, change)) {
			found = found || c.Code == code
		}
		if !found {
			t.Errorf("no clue %s", code)
		}
	}
}

func TestAMissingTimestampHeaderIsAClue(t *testing.T) {
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))
	d := delivery{signer: sender("svix", encoded), route: sender("svix", encoded), body: body}
	rep := Explain(d.input(t, func(in *Input) { in.Request.Header.Del("svix-timestamp") }))
	if len(rep.Clues) != 1 || rep.Clues[0].Code != "timestamp-missing" {
		t.Errorf("%+v", rep.Clues)
	}
}

// A route that has to choose an event id and does not is not told of changes:
// the signature is right.
func TestAMissingChoiceIsTheOnlyReason(t *testing.T) {
	d := delivery{signer: withoutID("zoom", secret), route: sender("zoom", secret), body: body}
	rep := Explain(d.input(t, nil))
	if rep.Verified || rep.Reason == nil || len(rep.Repairs) > 0 || rep.Tried > 0 {
		t.Errorf("%+v", rep)
	}
}

func TestTheAgeSaysOnWhichSide(t *testing.T) {
	for want, now := range map[string]time.Time{"1h0m0s before it arrived": noon.Add(time.Hour), "1h0m0s after it arrived": noon.Add(-time.Hour)} {
		rep := Explain(paymos().input(t, func(in *Input) { in.Now = now }))
		if len(rep.Clues) != 1 || !strings.Contains(rep.Clues[0].Text, want) {
			t.Errorf("%+v, want %s", rep.Clues, want)
		}
	}
}

func TestNothingSecretIsSaid(t *testing.T) {
	in := paymos().input(t, func(in *Input) {
		in.Config.Secrets[0].Value = "wrong-" + secret
		in.Others = []OtherSecret{{Place: "another route", Secret: verify.Secret{Value: secret}}}
		in.Request.Body = append(in.Request.Body, '\n')
	})
	rep := Explain(in)
	text := fmt.Sprintf("%v %+v", rep.Reason, rep)
	for _, s := range []string{secret, "invoice.paid", in.Request.Header.Get("X-Webhook-Signature")[20:40]} {
		if strings.Contains(text, s) {
			t.Errorf("%q is said: %s", s, text)
		}
	}
	if len(rep.Repairs) == 0 {
		t.Error("nothing was found")
	}
}
