package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestForgedDeliveriesReachNeitherStoreNorUpstream(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, allSenders(u), harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	sent := 0
	for _, name := range senders() {
		facts, _ := verify.SenderNamed(name)
		scheme := facts.Schemes[0]
		if scheme.Form != "" || !slices.Contains([]string{"", verify.SHA1, verify.SHA256, verify.SHA512}, scheme.Algorithm) {
			continue // no HMAC of the body in a header: these have tests of their own
		}
		signature := scheme.Headers[0]
		d := harness.NewSender(t, name).Event(harness.Unique("evt")).To(at(name))
		secret := "whsec_c29tZWJvZHkgZWxzZSdzIGtleSBvZiAzMiBieXRlcyE="
		if facts.SecretFormat == verify.Hex {
			secret = strings.Repeat("99", 32)
		}
		stranger := harness.NewSender(t, name, secret).Event(d.Event).To(at(name))
		tampered := d.With("X-Nothing")
		tampered.Body = append([]byte(" "), d.Body...)
		value := d.Header.Get(signature)
		for what, forged := range map[string]*harness.Delivery{
			"no signature":      d.With(signature),
			"empty signature":   d.With(signature, ""),
			"stranger's secret": stranger,
			"tampered body":     tampered,
			"cut signature":     d.With(signature, value[:len(value)-2]),
			"200 signatures":    d.With(signature, strings.Repeat("v1=00,", 200)),
		} {
			sent++
			if a := g.Send(t, forged); a.String() != "401" || a.Body != "" {
				t.Errorf("%s with %s: the sender got %q, %q", name, what, a, a.Body)
			}
		}
		assertReached(t, u, d.Event)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	g.Expect(t, harness.NewSender(t, "paymos").Event(harness.Unique("evt")).To(at("paymos")), "200 first")
	if len(monitor.Commands(t)) == 0 {
		t.Error("the monitor does not notice even what Redis is asked of a genuine delivery")
	}
	if n := g.Metric("rejections_total", `reason="forged"`) + g.Metric("rejections_total", `reason="unsigned"`); n != float64(sent) {
		t.Errorf("%v of %d forgeries are counted", n, sent)
	}
}

func TestOnlyForgeriesGetTheRoutesRejectStatus(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, proxied(u, "reject_status 406"), harness.WithRedis(r.Addr))
	s := harness.NewSender(t, "paymos")
	d := s.Event(harness.Unique("evt"))
	g.Expect(t, d.With("X-Webhook-Signature", "t=1,v1=00"), "406")
	g.Expect(t, d.With("X-Webhook-Signature"), "406")
	g.Expect(t, s.WithBody("", []byte(`{}`)), "400")
	for _, at := range []time.Duration{-time.Hour, time.Hour} {
		g.Expect(t, s.Signed(d.Event, d.Body, time.Now().Add(at)), "401")
	}
	if n := g.Metric("rejections_total", `reason="stale"`); n != 2 {
		t.Errorf("%v deliveries are counted as stale", n)
	}
	r.Kill()
	g.Expect(t, d, "503")
	assertReached(t, u, d.Event)
}

func TestToleranceIsTheRoutes(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u)+"\n"+route("/day", "paymos", "tolerance 24h")+route("/off", "paymos", "tolerance off"))
	s := harness.NewSender(t, "paymos")
	for path, ages := range map[string]map[time.Duration]bool{
		"/pay": {4 * time.Minute: true, 6 * time.Minute: false, -4 * time.Minute: true, -6 * time.Minute: false},
		"/day": {4 * time.Hour: true, 25 * time.Hour: false},
		"/off": {1000 * time.Hour: true, -1000 * time.Hour: true},
	} {
		for age, fresh := range ages {
			id := harness.Unique("evt")
			d := s.Signed(id, verify.SampleBody("paymos", id), time.Now().Add(-age)).To(path)
			want := "401"
			if fresh {
				want = "200 first"
			}
			if a := g.Send(t, d); a.String() != want {
				t.Errorf("%s, signed %v ago: the sender got %q, want %q", path, age, a, want)
			}
		}
	}
	milliseconds := s.Event(harness.Unique("evt"))
	signature := milliseconds.Header.Get("X-Webhook-Signature")
	g.Expect(t, milliseconds.With("X-Webhook-Signature", strings.Replace(signature, ",", "000,", 1)), "401")
}

func TestRotationOfSecrets(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	site := strings.Join([]string{
		route("/both", "paymos", "secret {env.NEW}", "secret {env.OLD}"),
		route("/previous", "paymos", "secret {env.NEW}", "previous_secret {env.OLD}"),
		route("/until", "paymos", "secret {env.NEW}", "previous_secret {env.OLD} until 2999-01-01T00:00:00Z"),
		route("/over", "paymos", "secret {env.NEW}", "previous_secret {env.OLD} until 2020-01-01T00:00:00Z"),
		route("/unset", "paymos", "secret {env.NEW}", "previous_secret {env.NOT_SET}"),
		route("/file", "paymos", "secret {file.{$DIR}/secret}"),
	}, "") + "reverse_proxy " + u.Addr
	g := harness.NewGateway(t)
	dir := strings.TrimSuffix(g.Write("secret", "the old one"), "/secret")
	g.Configure(harness.WithEnv("NEW=the new one", "OLD=the old one", "DIR="+dir))
	g.Start(site)
	before, after := harness.NewSender(t, "paymos", "the old one"), harness.NewSender(t, "paymos", "the new one")
	for path, want := range map[string][2]string{
		"/both": {"200 first", "200 first"}, "/previous": {"200 first", "200 first"}, "/until": {"200 first", "200 first"},
		"/over": {"401", "200 first"}, "/unset": {"401", "200 first"}, "/file": {"200 first", "401"},
	} {
		for i, s := range []*harness.Sender{before, after} {
			if a := g.Send(t, s.Event(harness.Unique("evt")).To(path)); a.String() != want[i] {
				t.Errorf("%s with secret %d: the sender got %q, want %q", path, i, a, want[i])
			}
		}
	}
	for _, path := range []string{"previous", "until"} {
		if n := g.Metric("previous_secret_total", `source="`+path+`"`); n != 1 {
			t.Errorf("%s: %v deliveries are counted as signed with the previous secret", path, n)
		}
	}
}

func TestSignaturesAreReadAsSendersWriteThem(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, allSenders(u))
	one := func(name, header string, change func(string) []string) {
		t.Helper()
		d := harness.NewSender(t, name).Event(harness.Unique("evt")).To(at(name))
		d = d.With(header, change(d.Header.Get(header))...)
		if a := g.Send(t, d); a.String() != "200 first" {
			t.Errorf("%s with %q: the sender got %q", name, d.Header.Values(header), a)
		}
	}
	mac := strings.Repeat("0", 64)
	one("paymos", "X-Webhook-Signature", func(v string) []string { return []string{v + ",v1=" + mac} })
	one("paymos", "X-Webhook-Signature", func(v string) []string { return []string{strings.Replace(v, ",v1=", ",v1="+mac+",v1=", 1)} })
	one("paymos", "X-Webhook-Signature", func(v string) []string { return []string{strings.Replace(v, ",", " , ", 1) + ",v0=zz,x"} })
	one("github", "X-Hub-Signature-256", func(v string) []string { return []string{"sha256=" + strings.ToUpper(v[len("sha256="):])} })
	one("svix", "Svix-Signature", func(v string) []string { return []string{"v1a,AAAA v1," + strings.Repeat("A", 43) + "= " + v} })
	one("standard-webhooks", "Webhook-Signature", func(v string) []string { return []string{"v2,xyz", v} })
}

func TestUnbrandedSvixIsTheSameSender(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, route("/pay", "svix")+"reverse_proxy "+u.Addr)
	id := harness.Unique("evt")
	branded, unbranded := harness.NewSender(t, "svix").Event(id), harness.NewSender(t, "standard-webhooks").WithBody(id, verify.SampleBody("svix", id))
	g.Expect(t, branded, "200 first")
	g.Expect(t, unbranded, "200 duplicate")
	assertReached(t, u, id, "first")
}

func TestSignatureThatCoversTheURL(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	lines := "signature {\nheader X-Sig\npayload {url}{body}\n}\nevent_id body_sha256\npublic_url https://hooks.example.com/cb"
	g := harness.StartGateway(t, route("/cb", "", lines)+"reverse_proxy "+u.Addr)
	s := harness.CustomSender(t, verify.Config{
		Scheme:  &verify.Scheme{Headers: []string{"X-Sig"}, Payload: "{url}{body}"},
		EventID: []verify.IDSource{{Kind: verify.FromBodySHA256}}, PublicURL: "https://hooks.example.com/cb",
	})
	event := harness.Unique("evt")
	d := s.ForURL("https://hooks.example.com/cb?x=1", event, []byte(event)).To("/cb?x=1")
	g.Expect(t, d.With("X-Forwarded-Host", "evil.example.com"), "200 first")
	g.Expect(t, d.To("/cb?x=2"), "401")
	other := s.ForURL("http://evil.example.com/cb?x=1", event, []byte(event+"2")).To("/cb?x=1")
	g.Expect(t, other.With("X-Forwarded-Host", "evil.example.com").With("X-Forwarded-Proto", "http"), "401")
	assertReached(t, u, event, "first")
}
