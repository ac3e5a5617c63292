package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

func TestUnusableStoreIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ store, reason string }{
		"several addresses":       {"redis {\naddress a:1 b:2\n}", "cluster or sentinel"},
		"no address":              {"redis", "no Redis address"},
		"cluster and sentinel":    {"redis {\naddress a:1 b:2\ncluster\nsentinel m\n}", "exclude each other"},
		"cluster with a database": {"redis {\naddress a:1\ncluster\ndb 2\n}", "no database but 0"},
		"address without a port":  {"redis {\naddress somewhere\n}", "address 1"},
		"url and address":         {"redis {\naddress a:1\nurl redis://b:1\n}", "either a URL or addresses"},
		"empty password":          {"redis {\naddress a:1\npassword {env.SURELY_NOT_SET}\n}", "password: it is empty"},
		"prefix with a brace":     {"redis {\naddress a:1\nkey_prefix \"{x}\"\n}", "brace"},
		"missing ca":              {"redis {\naddress a:1\ntls {\nca /surely/not/there\n}\n}", "tls"},
		"certificate alone":       {"redis {\naddress a:1\ntls {\ncertificate /x\n}\n}", "a certificate and its key go together"},
		"unknown redis option":    {"redis {\nadress a:1\n}", "unrecognized redis store option 'adress'"},
		"unknown store":           {"paper", "paper"},
		"odd sync":                {"file {\nsync never\n}", "neither everysec nor always"},
		"unknown file option":     {"file {\nsink always\n}", "unrecognized file store option 'sink'"},
		"two stores":              {"memory\nstore file", "one configuration has one store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := harness.NewGateway(t, harness.WithStore(c.store))
			out, ok := validate(t, g, "Caddyfile", route("/pay", "paymos"))
			if ok || !strings.Contains(out, c.reason) {
				t.Errorf("accepted %v, and the refusal does not say %q:\n%s", ok, c.reason, out)
			}
		})
	}
}

func TestUnreachableRedisIsNotRefused(t *testing.T) {
	t.Parallel()
	g := harness.NewGateway(t, harness.WithRedis(harness.ClosedPort(t)))
	if out, ok := validate(t, g, "Caddyfile", route("/pay", "paymos")); !ok {
		t.Fatalf("it is refused:\n%s", out)
	}
}

func TestValidateWorksBesideARunningGateway(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	for range 2 {
		if out, ok := validate(t, g, "other", proxied(u)); !ok {
			t.Fatalf("it is refused:\n%s", out)
		}
	}
	g.Expect(t, d, "200 duplicate")
}

func TestSecondProcessOnOneDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	first := harness.StartGateway(t, proxied(u))
	d := harness.NewSender(t, "paymos").Event(harness.Unique("evt"))
	first.Expect(t, d, "200 first")
	second := harness.NewGateway(t, harness.WithStore("file "+first.StoreDirectory()))
	file := second.Write("Caddyfile", second.Caddyfile(proxied(u)))
	out, ok := second.Run("run", "--config", file, "--adapter", "caddyfile")
	if ok || !strings.Contains(out, first.StoreDirectory()) {
		t.Errorf("accepted %v, and the refusal does not name the directory:\n%s", ok, out)
	}
	first.Expect(t, d, "200 duplicate")
	// Once the first has ended, the other takes over what it knew.
	first.Terminate()
	second.Start("")
	second.Expect(t, d, "200 duplicate")
}

func TestDamagedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	s := harness.NewSender(t, "paymos")
	for range 50 {
		g.Expect(t, s.Event(harness.Unique("evt")), "200 first")
	}
	g.Kill()
	damaged := spoilLargestFile(t, g.StoreDirectory())
	out, ok := g.Run("run", "--config", g.ConfigFile(), "--adapter", "caddyfile")
	if ok || !strings.Contains(out, damaged) {
		t.Errorf("accepted %v, and the refusal does not name %s:\n%s", ok, damaged, out)
	}
}

// spoilLargestFile changes a byte in the middle of a directory's largest file.
func spoilLargestFile(t *testing.T, dir string) (name string) {
	t.Helper()
	var content []byte
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && len(b) > len(content) {
			name, content = f, b
		}
	}
	if len(content) < 100 {
		t.Fatalf("the store left no file of any size in %s: %q", dir, files)
	}
	content[len(content)/2] ^= 0xff
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(name)
}

func TestTornEndOfTheLogCostsOnlyItself(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u))
	s := harness.NewSender(t, "paymos")
	d := s.Event(harness.Unique("evt"))
	g.Expect(t, d, "200 first")
	g.Kill()
	// A write that a power cut has torn: the head of a record and no more.
	for _, f := range []string{"torn"} {
		appendToNewest(t, g.StoreDirectory(), f)
	}
	g.Start("")
	g.Expect(t, d, "200 duplicate")
	g.Expect(t, s.Event(harness.Unique("evt")), "200 first")
}

func appendToNewest(t *testing.T, dir, text string) {
	t.Helper()
	var newest string
	var size int64
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Size() > size {
			newest, size = f, info.Size()
		}
	}
	f, err := os.OpenFile(newest, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
