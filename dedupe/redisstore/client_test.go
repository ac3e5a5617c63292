package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings are what the store depends on, whatever the client is.
type settings struct {
	retries, dials          int
	dial, read, write, pool time.Duration
	byContext, fromReplicas bool
	anonymous               bool
	maint                   maintnotifications.Mode
}

func TestEveryKindOfClientHasTheSettingsTheStoreNeeds(t *testing.T) {
	half := 500 * time.Millisecond
	want := settings{
		retries: maxRetries, dials: 1, dial: half, read: half, write: half, pool: half,
		byContext: true, anonymous: true, maint: maintnotifications.ModeDisabled,
	}
	for name, o := range map[string]Options{
		"server":   {Addresses: []string{"127.0.0.1:1"}},
		"URL":      {URL: "redis://127.0.0.1:1"},
		"sentinel": {Addresses: []string{"127.0.0.1:1"}, SentinelMaster: "m"},
	} {
		c := clientOf(t, o).(*redis.Client).Options()
		got := settings{
			c.MaxRetries, c.DialerRetries, c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout,
			c.ContextTimeoutEnabled, false, c.DisableIdentity, c.MaintNotificationsConfig.Mode,
		}
		wanted := want
		if o.SentinelMaster != "" {
			wanted.dial *= sentinelSteps // of half a second each
		}
		if got != wanted {
			t.Errorf("%s: got %+v, want %+v", name, got, wanted)
		}
	}
	c := clientOf(t, Options{Addresses: []string{"127.0.0.1:1", "127.0.0.1:2"}, Cluster: true}).(*redis.ClusterClient).Options()
	got := settings{
		maxRetries, c.DialerRetries, c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout,
		c.ContextTimeoutEnabled, c.ReadOnly || c.RouteByLatency || c.RouteRandomly, c.DisableIdentity, c.MaintNotificationsConfig.Mode,
	}
	if got != want || c.MaxRedirects != maxRedirects || c.MaxRetries != -1 {
		t.Errorf("cluster: got %+v, want %+v; redirects %d, retries %d", got, want, c.MaxRedirects, c.MaxRetries)
	}
}

func clientOf(t *testing.T, o Options) redis.UniversalClient {
	t.Helper()
	r, err := o.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(r)
	t.Cleanup(func() { c.Close() })
	return c
}
