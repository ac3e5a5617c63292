package caddymodule

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe/redisstore"
)

// RedisStore keeps events in Redis (6.2 or newer) or Valkey, which several
// gateways may share: one server, a primary watched by Sentinel, or a cluster.
// Its eviction policy must be `noeviction`, and it should persist what it holds.
type RedisStore struct {
	// The servers, as host:port. Several need `cluster` or `sentinel`.
	Addresses []string `json:"address,omitempty"`

	// A redis:// or rediss:// URL, instead of address, username, password and db.
	URL string `json:"url,omitempty"`

	// The user. Default: none.
	Username string `json:"username,omitempty"`

	// The password. Use a placeholder, such as `{env.REDIS_PASSWORD}`. Default:
	// none.
	Password string `json:"password,omitempty"`

	// The number of the database. Default: 0.
	DB int `json:"db,omitempty"`

	// The addresses are seeds of a Redis Cluster. Default: false.
	Cluster bool `json:"cluster,omitempty"`

	// The name of the master that the sentinels at the addresses watch. Default:
	// none, the address is the server itself.
	Sentinel string `json:"sentinel,omitempty"`

	// Encrypt the connection. Default: not, unless the URL is rediss://.
	TLS *RedisTLS `json:"tls,omitempty"`

	// What every key begins with. Default: `webhook_dedupe`.
	KeyPrefix string `json:"key_prefix,omitempty"`

	// How long one operation of the store may take, retries included. Default: 1s.
	OperationTimeout caddy.Duration `json:"timeout,omitempty"`

	options redisstore.Options
	logger  *zap.Logger
}

// RedisTLS is how the connection to Redis is encrypted.
type RedisTLS struct {
	// A PEM file with the certificates to trust. Default: the system's.
	CA string `json:"ca,omitempty"`

	// PEM files with the client's certificate and its key. Default: none.
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`

	// The name that the server's certificate must have. Default: the host of the
	// address.
	ServerName string `json:"server_name,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (RedisStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.webhook_dedupe.stores.redis", New: func() caddy.Module { return new(RedisStore) }}
}

// Provision implements [caddy.Provisioner]. It dials nothing.
func (s *RedisStore) Provision(ctx caddy.Context) (err error) {
	s.logger = ctx.Logger()
	o := redisstore.Options{
		DB: s.DB, Cluster: s.Cluster, SentinelMaster: s.Sentinel, KeyPrefix: s.KeyPrefix, Timeout: time.Duration(s.OperationTimeout),
	}
	for _, field := range []struct {
		name, value string
		to          *string
	}{
		{"url", s.URL, &o.URL},
		{"username", s.Username, &o.Username},
		{"password", s.Password, &o.Password},
	} {
		if field.value == "" {
			continue
		}
		if *field.to, err = resolve(field.value); err != nil {
			return fmt.Errorf("redis %s: %w", field.name, err)
		}
	}
	for _, address := range s.Addresses {
		resolved, err := resolve(address)
		if err != nil {
			return fmt.Errorf("redis address: %w", err)
		}
		o.Addresses = append(o.Addresses, resolved)
	}
	if s.TLS != nil {
		if o.TLS, err = s.TLS.config(); err != nil {
			return fmt.Errorf("redis tls: %w", err)
		}
	}
	s.options = o
	return o.Validate()
}

func (t *RedisTLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", t.CA)
		}
	}
	if (t.Certificate == "") != (t.Key == "") {
		return nil, errors.New("a certificate and its key go together")
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Identity implements [StoreModule].
func (s *RedisStore) Identity() string { return "redis " + s.options.Identity() }

// Shared implements [StoreModule].
func (*RedisStore) Shared() bool { return true }

// Timeout implements [StoreModule].
func (s *RedisStore) Timeout() time.Duration {
	return or(time.Duration(s.OperationTimeout), time.Second)
}

// Open implements [StoreModule]. The store is checked in the background.
func (s *RedisStore) Open(*zap.Logger) (dedupe.Store, error) {
	store, err := redisstore.New(s.options)
	if err != nil {
		return nil, err
	}
	return watchRedis(store, s.logger), nil
}

// Apply implements [StoreModule].
func (s *RedisStore) Apply(store dedupe.Store) error {
	checked := store.(*checkedRedis)
	checked.logger.Store(s.logger)
	return checked.Update(s.options)
}

// Interface guards.
var (
	_ StoreModule       = (*RedisStore)(nil)
	_ caddy.Provisioner = (*RedisStore)(nil)
)
