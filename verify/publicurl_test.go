package verify

import (
	"strings"
	"testing"
)

func TestPublicURLIsCompletedByTheRequest(t *testing.T) {
	for _, c := range []struct{ public, uri, want string }{
		{"https://h.test", "/cb?x=1", "https://h.test/cb?x=1"},
		{"https://h.test/", "/cb", "https://h.test/cb"},
		{"https://h.test:8443", "/", "https://h.test:8443/"},
		{"https://h.test", "/a%2Fb/../c?", "https://h.test/a%2Fb/../c?"},
		{"https://h.test/cb", "/internal?x=1", "https://h.test/cb?x=1"},
		{"https://h.test/cb", "/internal", "https://h.test/cb"},
		{"https://h.test/cb", "/internal?", "https://h.test/cb"},
		{"https://h.test/cb/", "/internal?x=1?y", "https://h.test/cb/?x=1?y"},
		{"https://h.test/cb?k=1", "/internal?x=1", "https://h.test/cb?k=1"},
		{"https://h.test/?k=1", "/internal?x=1", "https://h.test/?k=1"},
		{"https://h.test/cb?", "/internal?x=1", "https://h.test/cb?"},
	} {
		p, err := parsePublicURL(c.public)
		if err != nil {
			t.Errorf("%s: %v", c.public, err)
			continue
		}
		if head, tail := p.of(c.uri); head+tail != c.want {
			t.Errorf("%s with %s: got %s", c.public, c.uri, head+tail)
		}
	}
}

func TestPublicURLMustBeAbsolute(t *testing.T) {
	for _, u := range []string{"h.test", "/cb", "ftp://h.test", "https://", "https:///cb", "https://u:p@h.test", "https://h.test/#x", "https://h.test\n", "{env.URL}"} {
		refused(t, customConfig(Scheme{}, func(c *Config) { c.PublicURL = u }), "public_url")
	}
}

func TestURLNeverComesFromTheClient(t *testing.T) {
	v := custom(t, Scheme{Payload: "{url}{body}"}, func(c *Config) { c.PublicURL = "https://hooks.example.test/cb" })
	right := sign(testSecret, "https://hooks.example.test/cb{}")
	accept(t, v, post("{}", "X-Id: 1", "X-Sig: "+right, "X-Forwarded-Host: evil.test", "Host: evil.test", "Forwarded: host=evil.test"))
	evil := sign(testSecret, "https://evil.test/cb{}")
	refuse(t, v, post("{}", "X-Id: 1", "X-Sig: "+evil, "X-Forwarded-Host: evil.test", "Host: evil.test"), ErrForged)
}

// FuzzPublicURL: what is accepted is a URL of http or https, and is never
// completed by another host.
func FuzzPublicURL(f *testing.F) {
	f.Add("https://h.test", "/cb?q=1")
	f.Add("http://h.test:8080/cb", "/other?q=1")
	f.Add("https://h.test/cb?fixed=1", "//evil.test/?a")
	f.Add("https://h.test/", "http://evil.test/")
	f.Add("https://u:p@h.test", "")
	f.Fuzz(func(t *testing.T, text, uri string) {
		p, err := parsePublicURL(text)
		if err != nil {
			return
		}
		head, tail := p.of(uri)
		switch {
		case text == "" && head == "":
		case !strings.HasPrefix(strings.ToLower(head), "http"): // RFC 3986, 3.1: in any case; it is signed as it was told
			t.Errorf("%q begins as %q", text, head)
		case !p.origin && tail != "" && tail[0] != '?':
			t.Errorf("%q is completed by %q", text, tail)
		}
	})
}
