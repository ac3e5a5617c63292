package redisstore

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"
)

const secret = "s3cr3t/p@ss word"

func TestUnusableOptionsAreRefused(t *testing.T) {
	one := []string{"redis:6379"}
	two := []string{"a:6379", "b:6379"}
	for name, o := range map[string]Options{
		"no address":                  {},
		"several addresses":           {Addresses: two},
		"cluster and sentinel":        {Addresses: two, Cluster: true, SentinelMaster: "m"},
		"cluster with a database":     {Addresses: two, Cluster: true, DB: 1},
		"negative database":           {Addresses: one, DB: -1},
		"negative timeout":            {Addresses: one, Timeout: -1},
		"sentinel login, no sentinel": {Addresses: one, SentinelPassword: secret},
		"no port":                     {Addresses: []string{"redis"}},
		"no host":                     {Addresses: []string{":6379"}},
		"port 0":                      {Addresses: []string{"redis:0"}},
		"named port":                  {Addresses: []string{"redis:redis"}},
		"a URL as address":            {Addresses: []string{"redis://:" + secret + "@redis:6379"}},
		"a login in the address":      {Addresses: []string{secret + "@redis:6379"}},
		"URL and address":             {URL: "redis://redis", Addresses: one},
		"URL and user":                {URL: "redis://redis", Username: "u"},
		"URL and password":            {URL: "redis://redis", Password: secret},
		"URL and database":            {URL: "redis://redis", DB: 1},
		"URL and sentinel":            {URL: "redis://redis", SentinelMaster: "m"},
		"URL of another kind":         {URL: "http://u:" + secret + "@redis"},
		"URL without scheme":          {URL: "redis:6379"},
		"URL without host":            {URL: "redis://:pw@:6379/1"},
		"unencoded password":          {URL: "redis://u:" + secret + "@redis:6379"},
		"password without a colon":    {URL: "redis://" + secret + "@redis:6379"},
		"database is no number":       {URL: "redis://redis:6379/" + secret},
		"two databases":               {URL: "redis://redis:6379/1/" + secret},
		"bad escape":                  {URL: "redis://u:%zz" + secret + "@redis"},
		"URL with a foreign option":   {URL: "redis://redis?max_retries=9"},
		"password as an option":       {URL: "redis://redis?" + secret},
		"socket without a path":       {URL: "unix://"},
		"cluster URL with a path":     {URL: "redis://a:1/1", Cluster: true},
		"cluster URL with db":         {URL: "redis://a:1?db=1", Cluster: true},
		"cluster URL, bad escape":     {URL: "redis://u:%zz" + secret + "@a:1", Cluster: true},
		"cluster of sockets":          {URL: "unix:///tmp/" + secret, Cluster: true},
		"prefix with braces":          {Addresses: one, KeyPrefix: "{a}"},
		"prefix with a blank":         {Addresses: one, KeyPrefix: "a b"},
		"prefix with a line end":      {Addresses: one, KeyPrefix: "a\n"},
		"prefix with NUL":             {Addresses: one, KeyPrefix: "\x00"},
		"prefix that is not UTF-8":    {Addresses: one, KeyPrefix: "\xff"},
		"prefix of nothing":           {Addresses: one, KeyPrefix: ":"},
	} {
		err := o.Validate()
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, piece := range []string{secret, "s3cr3t", "p@ss", "word"} {
			if piece == "word" && strings.Contains(err.Error(), "password") {
				continue
			}
			if strings.Contains(err.Error(), piece) {
				t.Errorf("%s: the error shows the password: %v", name, err)
			}
		}
		if _, newErr := New(o); newErr == nil {
			t.Errorf("%s: New accepted what Validate refused", name)
		}
		if o.Identity() == "" {
			t.Errorf("%s: no identity at all", name)
		}
	}
}

func TestUsableOptionsAreAccepted(t *testing.T) {
	for name, o := range map[string]Options{
		"address":        {Addresses: []string{"redis.internal:6379"}},
		"IPv6":           {Addresses: []string{"[::1]:6379"}},
		"socket":         {Addresses: []string{"/run/redis.sock"}},
		"cluster":        {Addresses: []string{"a:1", "b:1"}, Cluster: true},
		"one seed":       {Addresses: []string{"a:1"}, Cluster: true},
		"sentinels":      {Addresses: []string{"a:1", "b:1"}, SentinelMaster: "m", SentinelPassword: secret},
		"URL":            {URL: "redis://u:p@redis:6380/3"},
		"bare URL":       {URL: "redis://redis"},
		"TLS URL":        {URL: "rediss://redis:6380"},
		"socket URL":     {URL: "unix://u:p@/run/redis.sock?db=2"},
		"cluster URL":    {URL: "rediss://u:p@a:1?addr=b:2", Cluster: true},
		"everything":     {Addresses: []string{"a:1"}, Username: "u", Password: secret, DB: 3, KeyPrefix: "a.b-c/ü", Timeout: time.Minute},
		"tiny timeout":   {Addresses: []string{"a:1"}, Timeout: time.Millisecond},
		"prefix with :!": {Addresses: []string{"a:1"}, KeyPrefix: "shop:hooks!"},
	} {
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	r, err := Options{Addresses: []string{"a:1"}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if r.prefix != "webhook_dedupe" || r.timeout != time.Second || r.tls != nil || r.db != 0 {
		t.Errorf("defaults: %+v", r)
	}
}

func TestURLSaysTheSameAsOptions(t *testing.T) {
	for url, o := range map[string]Options{
		"redis://u:p@redis:6380/3":     {Addresses: []string{"redis:6380"}, Username: "u", Password: "p", DB: 3},
		"redis://redis":                {Addresses: []string{"redis:6379"}},
		"redis://:p%2F%40@[::1]?db=4":  {Addresses: []string{"[::1]:6379"}, Password: "p/@", DB: 4},
		"unix://u:p@/run/r.sock?db=2":  {Addresses: []string{"/run/r.sock"}, Username: "u", Password: "p", DB: 2},
		"rediss://redis.example:16379": {Addresses: []string{"redis.example:16379"}},
	} {
		fromURL, err := Options{URL: url}.resolve()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, err := o.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if fromURL.identity() != want.identity() || fromURL.password != want.password {
			t.Errorf("%s: got %s", url, fromURL.identity())
		}
		if encrypted := fromURL.tls != nil; encrypted != strings.HasPrefix(url, "rediss:") {
			t.Errorf("%s: TLS is %v", url, encrypted)
		}
	}
}

func TestConfiguredTLSGoesBeforeTheURLs(t *testing.T) {
	mine := &tls.Config{ServerName: "mine"}
	r, err := Options{URL: "rediss://redis", TLS: mine}.resolve()
	if err != nil || r.tls != mine {
		t.Errorf("got %v, %v", r.tls, err)
	}
}

func TestIdentityIsTheStoreAndNothingElse(t *testing.T) {
	base := func() Options {
		return Options{Addresses: []string{"a:1", "b:1"}, Cluster: true, Username: "u", Password: "p"}
	}
	id := base().Identity()
	for name, change := range map[string]func(*Options){
		"password": func(o *Options) { o.Password = secret },
		"timeout":  func(o *Options) { o.Timeout = time.Minute },
		"TLS":      func(o *Options) { o.TLS = &tls.Config{} },
		"order":    func(o *Options) { o.Addresses = []string{"b:1", "a:1"} },
		"default":  func(o *Options) { o.KeyPrefix = "webhook_dedupe" },
		"as URL":   func(o *Options) { *o = Options{URL: "redis://u:x@a:1?addr=b:1", Cluster: true} },
	} {
		o := base()
		change(&o)
		if got := o.Identity(); got != id {
			t.Errorf("%s changes the identity: %s", name, got)
		}
	}
	for name, change := range map[string]func(*Options){
		"address":  func(o *Options) { o.Addresses = []string{"a:1", "c:1"} },
		"user":     func(o *Options) { o.Username = "v" },
		"prefix":   func(o *Options) { o.KeyPrefix = "x" },
		"sentinel": func(o *Options) { o.Cluster, o.SentinelMaster = false, "m" },
	} {
		o := base()
		change(&o)
		if o.Identity() == id {
			t.Errorf("another %s has the same identity", name)
		}
	}
}

func TestPrintingOptionsShowsNoPassword(t *testing.T) {
	o := Options{Addresses: []string{"a:1"}, SentinelMaster: "m", Password: secret, SentinelPassword: secret}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, o); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "a:1") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
