package caddymodule

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// provisionStore provisions a configuration with this store and one route.
func provisionStore(t *testing.T, store string) (*App, error) {
	t.Helper()
	ctx, err := provision(t, "{\nadmin off\nauto_https off\nwebhook_dedupe {\nstore "+store+"\n}\n}\nhttp://x {\n"+stripe("")+"\n}", newLogBook())
	if err != nil {
		return nil, err
	}
	app, err := ctx.App(appName)
	return app.(*App), err
}

func TestUnusableStoresAreRefused(t *testing.T) {
	for store, want := range map[string]string{
		"redis":                       "no Redis address",
		"redis {\naddress a:1 b:1\n}": "several Redis addresses need cluster or sentinel",
		"redis {\naddress a:1 b:1\ncluster\nsentinel m\n}":           "exclude each other",
		"redis {\naddress a:1\nurl redis://a\n}":                     "either a URL or addresses",
		"redis {\naddress a:1\npassword {env.TEST_UNSET}\n}":         "redis password: it is empty",
		"redis {\naddress a:1\npassword {nonsense}\n}":               "redis password: it holds a placeholder",
		"redis {\naddress {env.TEST_UNSET}\n}":                       "redis address: it is empty",
		"redis {\naddress a:1\nkey_prefix {a}\n}":                    "brace",
		"redis {\naddress a:1\ntls {\nca /no/such/file\n}\n}":        "redis tls",
		"redis {\naddress a:1\ntls {\ncertificate /no/such\n}\n}":    "go together",
		"redis {\nurl redis://user:s3cr3t-value@host:port:port/x\n}": "",
		"file {\nsync sometimes\n}":                                  "neither everysec nor always",
		"file {env.TEST_UNSET}":                                      "directory: it is empty",
	} {
		_, err := provisionStore(t, store)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", store, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t-value") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestStoresAreKnownByWhatIdentifiesThem(t *testing.T) {
	t.Setenv("TEST_PASSWORD", "s3cr3t-value")
	identity := func(store string) string {
		t.Helper()
		a, err := provisionStore(t, store)
		if err != nil {
			t.Fatal(err)
		}
		return a.store.Identity()
	}
	redis := identity("redis {\naddress a:1\npassword {env.TEST_PASSWORD}\n}")
	if strings.Contains(redis, "s3cr3t-value") {
		t.Errorf("the identity is %q", redis)
	}
	for _, same := range []string{
		"redis {\naddress a:1\n}", "redis {\naddress a:1\ntimeout 5s\n}", "redis {\nurl redis://a:1\n}",
	} {
		if got := identity(same); got != redis {
			t.Errorf("%s is %q, not %q", same, got, redis)
		}
	}
	for _, other := range []string{
		"redis {\naddress b:1\n}", "redis {\naddress a:1\ndb 1\n}", "redis {\naddress a:1\nusername u\n}", "redis {\naddress a:1\nkey_prefix p\n}", "memory",
	} {
		if identity(other) == redis {
			t.Errorf("%s is %q too", other, redis)
		}
	}
	dir := t.TempDir()
	if a, b := identity("file "+dir), identity("file "+filepath.Join(dir, "x", "..")+" {\nsync always\n}"); a != b {
		t.Errorf("one directory is %q and %q", a, b)
	}
	if a, b := identity("file "+dir), identity("file"); a == b {
		t.Errorf("two directories are %q", a)
	}
}

func TestStoresSayWhetherTheyAreShared(t *testing.T) {
	for store, want := range map[string]struct {
		shared  bool
		timeout time.Duration
	}{
		"memory":                              {false, time.Second},
		"file":                                {false, 5 * time.Second},
		"redis {\naddress a:1\n}":             {true, time.Second},
		"redis {\naddress a:1\ntimeout 3s\n}": {true, 3 * time.Second},
	} {
		a, err := provisionStore(t, store)
		if err != nil {
			t.Fatal(err)
		}
		if a.store.Shared() != want.shared || a.store.Timeout() != want.timeout {
			t.Errorf("%s: shared %v, timeout %v", store, a.store.Shared(), a.store.Timeout())
		}
	}
}

func TestFileStoreIsTheDefault(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	ctx, err := provision(t, "{\nadmin off\nauto_https off\n}\nhttp://x {\n"+stripe("")+"\n}", newLogBook())
	if err != nil {
		t.Fatal(err)
	}
	app, _ := ctx.App(appName)
	store, ok := app.(*App).store.(*FileStore)
	if !ok || filepath.Base(store.Directory) != "webhook_dedupe" || !filepath.IsAbs(store.Directory) {
		t.Errorf("got %T %+v", app.(*App).store, store)
	}
}

func TestFileStoreServesAndRefusesASecondHolder(t *testing.T) {
	dir := t.TempDir()
	a, err := provisionStore(t, "file "+dir+" {\nsync always\n}")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	if store, err := a.store.Open(nil); err == nil {
		t.Error("the directory was opened twice")
		_ = store.Close()
	}
	if err := a.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if _, open := openStores.References(a.store.Identity()); open {
		t.Error("the store is open still")
	}
}

func TestUnreachableRedisKeepsNobodyFromStarting(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	a, err := provisionStore(t, "redis {\naddress 127.0.0.1:1\ntimeout 50ms\n}")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Error(err)
	}
	if err := a.Cleanup(); err != nil {
		t.Error(err)
	}
}
