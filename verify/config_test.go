package verify

import (
	"strings"
	"testing"
	"time"
)

// refused checks that New refuses a configuration, says why, and keeps secrets
// to itself.
func refused(t *testing.T, c Config, reason string) {
	t.Helper()
	_, err := New(c)
	if err == nil {
		t.Errorf("accepted, want %q", reason)
		return
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("got %q, want %q", err, reason)
	}
	for _, s := range c.Secrets {
		if key := strings.Trim(s.Value, " \t\n\"'"); len(key) > 3 && strings.Contains(err.Error(), key) {
			t.Errorf("the secret is in %q", err)
		}
	}
}

func TestUnsafeSchemesAreRefused(t *testing.T) {
	stamp := Timestamp{Field: "t"}
	for reason, s := range map[string]Scheme{
		"any body would pass":                 {Payload: "{id}"},
		"unknown placeholder {http.request.u": {Payload: "{http.request.uri}{body}"},
		"{url} needs public_url":              {Payload: "{url}{body}"},
		"{timestamp} needs a timestamp":       {Payload: "{timestamp}{body}"},
		"anybody could change it":             {Timestamp: stamp},
		"unknown algorithm \"md5\"":           {Algorithm: "md5"},
		"unknown encoding \"HEX\"":            {Encoding: "HEX"},
		"unknown unit \"s\"":                  {Payload: "{timestamp}{body}", Timestamp: Timestamp{Field: "t", Unit: "s"}},
		"exclude each other":                  {Payload: "{timestamp}{body}", Timestamp: Timestamp{Field: "t", Header: "X-T"}},
		"json exclude each":                   {Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X-T", JSON: "t"}},
		"timestamp: a JSON path":              {Timestamp: Timestamp{JSON: "a..b"}},
		"label of signatures as well":         {Payload: "{timestamp}{body}", Timestamp: stamp, Labels: []string{"v1", "t"}},
		"header \"X_Sig\"":                    {Headers: []string{"X-Ok", "X_Sig"}},
		"header \"X.Sig\"":                    {Headers: []string{"X.Sig"}},
		"header \"X Sig\"":                    {Headers: []string{"X Sig"}},
		"header \"X_Time\"":                   {Payload: "{timestamp}{body}", Timestamp: Timestamp{Header: "X_Time"}},
		"header \"X_Own_Id\"":                 {Payload: "{id}{body}", IDHeader: "X_Own_Id"},
		"no signature header":                 {Headers: []string{}},
		"a header needs a name":               {Headers: []string{""}},
		"contains a separator":                {Labels: []string{"v1="}},
		"a label is empty":                    {Labels: []string{""}},
		"separator: it must not":              {Separator: "a"},
		"a { without its }":                   {Payload: "{body}{"},
	} {
		refused(t, customConfig(s), reason)
	}
}

func TestIncompleteConfigurationsAreRefused(t *testing.T) {
	refused(t, Config{}, "neither a sender")
	refused(t, Config{Sender: "stripe", Scheme: &Scheme{}}, "exclude each other")
	refused(t, Config{Sender: "strip", Secrets: []Secret{{Value: "x"}}}, "unknown sender \"strip\"; there are adyen, adyen-banking,")
	refused(t, Config{Sender: "github", Secrets: []Secret{{Value: "x"}}, Tolerance: time.Minute}, "covers no timestamp")
	for reason, sources := range map[string][]IDSource{
		"no event_id":                     {},
		"unknown source \"\"":             {{}},
		"unknown source \"cookie\"":       {{"cookie", "x"}},
		"Caddy drops headers":             {{FromHeader, "X_Id"}},
		"a header needs a name":           {{FromHeader, ""}},
		"a parameter needs a name":        {{FromQuery, ""}},
		"empty name between its dots":     {{FromJSON, ""}},
		"body_sha256 takes no name":       {{FromBodySHA256, "x"}},
		"unknown source \"event\"; there": {{FromHeader, "X-Id"}, {"event", "x"}},
	} {
		refused(t, customConfig(Scheme{}, eventID(sources...)), reason)
	}
}

func TestSignedIDNeedsOneHeaderOrParameter(t *testing.T) {
	s := Scheme{Payload: "{id}{body}"}
	const reason = "{id} needs an event_id that is one header or one query parameter"
	refused(t, customConfig(s, eventID(IDSource{FromJSON, "id"})), reason)
	refused(t, customConfig(s, eventID(IDSource{Kind: FromBodySHA256})), reason)
	refused(t, customConfig(s, eventID(IDSource{FromHeader, "A"}, IDSource{FromHeader, "B"})), reason)
	custom(t, s, eventID(IDSource{FromQuery, "id"}))
	s.IDHeader = "X-Msg"
	custom(t, s, eventID(IDSource{FromJSON, "id"}))
	custom(t, s, eventID()) // the header is the event id as well
}

func TestSecretsAreRequired(t *testing.T) {
	refused(t, Config{Sender: "google-pubsub", Secrets: []Secret{{Value: "x"}}}, "give an `oidc` block")
	for _, sender := range signingSenders() {
		c := presetConfig(sender, "https://h.test")
		refused(t, c, "no secret")
		for _, blank := range []string{"", " ", "\n", "\t \r\n"} {
			c.Secrets = []Secret{{Value: testSecret}, {Value: blank}}[1:]
			refused(t, c, "secret 1 is empty")
		}
	}
	refused(t, customConfig(Scheme{}, secrets("good", "")), "secret 2 is empty")
}

func TestSlipsOfThePenInSecretsAreRefused(t *testing.T) {
	good := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, sender := range []string{"paymos", "svix"} {
		preset(t, sender, good)
		for value, reason := range map[string]string{
			good + "\n": "white space", " " + good: "white space", good + " ": "white space", "\u00a0" + good: "white space",
			"v1," + good: "leave the label out", `"` + good + `"`: "wrapped in quotes", "'" + good + "'": "wrapped in quotes",
		} {
			refused(t, Config{Sender: sender, Secrets: []Secret{{Value: value}}}, reason)
		}
	}
}

func TestPrefixDoesNotDecideHowASecretIsRead(t *testing.T) {
	const secret = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
	byFormat := func(format string) *Verifier {
		return custom(t, Scheme{}, secrets(secret), func(c *Config) { c.SecretFormat = format })
	}
	text := post("{}", "X-Sig: "+sign(secret, "{}"))
	decoded := post("{}", "X-Sig: "+sign("ABCDEFGHIJKLMNOPQRSTUVWX", "{}"))
	accept(t, byFormat(""), text)
	accept(t, byFormat(Text), text)
	accept(t, byFormat(Base64), decoded)
	refuse(t, byFormat(Text), decoded, ErrForged)
	refuse(t, byFormat(Base64), text, ErrForged)
	refused(t, customConfig(Scheme{}, secrets(secret), func(c *Config) { c.SecretFormat = "raw" }), "unknown format \"raw\"")
}

func TestCustomSchemesHaveSafeDefaults(t *testing.T) {
	v := custom(t, Scheme{Payload: "{timestamp}.{body}", Timestamp: Timestamp{Field: "t"}})
	if v.Tolerance() != DefaultTolerance || !v.HasTimestamp() || v.IDSigned() {
		t.Errorf("tolerance %v, timestamp %v, id signed %v", v.Tolerance(), v.HasTimestamp(), v.IDSigned())
	}
	if v := custom(t, Scheme{}); v.Tolerance() != 0 || v.HasTimestamp() {
		t.Errorf("tolerance %v, timestamp %v", v.Tolerance(), v.HasTimestamp())
	}
}

func TestIDSignedMeansAllOfIt(t *testing.T) {
	url := func(u string) func(*Config) { return func(c *Config) { c.PublicURL = u } }
	signsURL := Scheme{Payload: "{url}{body}"}
	header, query := IDSource{FromHeader, "x-id"}, IDSource{FromQuery, "id"}
	for name, c := range map[string]struct {
		scheme  Scheme
		url     string
		sources []IDSource
		want    bool
	}{
		"body":                 {Scheme{}, "", []IDSource{{FromJSON, "id"}}, true},
		"body hash":            {Scheme{}, "", []IDSource{{Kind: FromBodySHA256}}, true},
		"header":               {Scheme{}, "", []IDSource{header}, false},
		"signed header":        {Scheme{Payload: "{id}{body}"}, "", []IDSource{header}, true},
		"another header":       {Scheme{Payload: "{id}{body}", IDHeader: "X-Msg"}, "", []IDSource{header}, false},
		"query named alike":    {Scheme{Payload: "{id}{body}", IDHeader: "Id"}, "", []IDSource{{FromQuery, "Id"}}, false},
		"query":                {Scheme{}, "", []IDSource{query}, false},
		"query of an origin":   {signsURL, "https://h.test", []IDSource{query}, true},
		"query of a path":      {signsURL, "https://h.test/x", []IDSource{query}, true},
		"query not signed":     {signsURL, "https://h.test/x?y=1", []IDSource{query}, false},
		"partly":               {Scheme{}, "", []IDSource{{FromJSON, "id"}, header}, false},
		"header beside a URL":  {signsURL, "https://h.test", []IDSource{header}, false},
		"url without its need": {Scheme{}, "https://h.test", []IDSource{query}, false},
	} {
		if v := custom(t, c.scheme, url(c.url), eventID(c.sources...)); v.IDSigned() != c.want {
			t.Errorf("%s: got %v", name, !c.want)
		}
	}
}

func TestFingerprintTellsSchemesSecretsAndIDsApart(t *testing.T) {
	base := customConfig(Scheme{}, secrets("one", "two"))
	same := map[string]Config{
		"defaults written out": customConfig(Scheme{Headers: []string{"x-sig"}, Separator: ",", Algorithm: SHA256, Encoding: Hex, Payload: "{http.request.body}"}, secrets("one", "two")),
		"order of secrets":     customConfig(Scheme{Labels: []string{}}, secrets("two", "one")),
		"end of a secret":      customConfig(Scheme{}, func(c *Config) { c.Secrets = []Secret{{"one", noon}, {"two", noon}} }),
		"public url":           customConfig(Scheme{}, secrets("one", "two"), func(c *Config) { c.PublicURL = "https://h.test" }),
	}
	other := map[string]Config{
		"secret":       customConfig(Scheme{}, secrets("one", "three")),
		"fewer":        customConfig(Scheme{}, secrets("one")),
		"id":           customConfig(Scheme{}, secrets("one", "two"), eventID(IDSource{FromJSON, "id"})),
		"json path":    customConfig(Scheme{}, secrets("one", "two"), eventID(IDSource{FromJSON, "a.b"})),
		"escaped path": customConfig(Scheme{}, secrets("one", "two"), eventID(IDSource{FromJSON, `a\.b`})),
		"scheme":       customConfig(Scheme{Prefix: "sha256="}, secrets("one", "two")),
		"joined":       customConfig(Scheme{}, secrets("onetwo")),
	}
	want := mustNew(t, base).Fingerprint()
	for name, c := range same {
		if mustNew(t, c).Fingerprint() != want {
			t.Errorf("%s: differs", name)
		}
	}
	seen := map[[32]byte]string{want: "the base"}
	for name, c := range other {
		f := mustNew(t, c).Fingerprint()
		if seen[f] != "" {
			t.Errorf("%s is like %s", name, seen[f])
		}
		seen[f] = name
	}
}
