package verify

import "testing"

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
