package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Options say which Redis, and how to reach it.
type Options struct {
	// Addresses are host:port each, or the path of one Unix socket. Several need
	// Cluster (its seeds) or SentinelMaster (the sentinels).
	Addresses []string
	// URL replaces Addresses, Username, Password and DB:
	// redis://[user:password@]host[:port][/db], rediss:// for TLS, or
	// unix://[user:password@]/path[?db=n]. A cluster's may list further seeds as
	// addr=host:port.
	URL string
	// Username and Password log in at the server. Default none.
	Username string
	Password string
	// DB is the number of the database. Default 0, the only one of a cluster.
	DB int
	// Cluster says that the addresses are those of a Redis Cluster.
	Cluster bool
	// SentinelMaster is the name of the master that the sentinels at Addresses
	// watch. Default none: Addresses are the server itself.
	SentinelMaster string
	// SentinelUsername and SentinelPassword log in at the sentinels. Default none.
	SentinelUsername string
	SentinelPassword string
	// TLS switches TLS on. Default nil: off, unless the URL is rediss://.
	TLS *tls.Config
	// KeyPrefix begins every key: no blanks, control characters or braces.
	// Default "webhook_dedupe".
	KeyPrefix string
	// Timeout bounds one operation of the store, retries included. Default 1s.
	Timeout time.Duration
}

const (
	defaultKeyPrefix = "webhook_dedupe"
	defaultTimeout   = time.Second
)

// Validate reports why the options cannot be used, or nil. It looks at nothing
// but the options, and its errors quote no part of the URL or an address.
func (o Options) Validate() error {
	_, err := o.resolve()
	return err
}

// Identity names the store that the options lead to: mode, addresses, user,
// database and key prefix. Options with one identity may share a [Store]; the
// rest of them can be changed by [Store.Update]. It holds no secret.
func (o Options) Identity() string {
	r, err := o.resolve()
	if err != nil {
		return "invalid redis options"
	}
	return r.identity()
}

// String is the identity, so that printing options shows no password.
func (o Options) String() string { return o.Identity() }

// GoString is like String.
func (o Options) GoString() string { return o.Identity() }

// resolve checks the options and reduces them to what a client needs.
func (o Options) resolve() (resolved, error) {
	r := resolved{
		addresses:        o.Addresses,
		username:         o.Username,
		password:         o.Password,
		db:               o.DB,
		cluster:          o.Cluster,
		master:           o.SentinelMaster,
		sentinelUsername: o.SentinelUsername,
		sentinelPassword: o.SentinelPassword,
		tls:              o.TLS,
		prefix:           o.KeyPrefix,
		timeout:          o.Timeout,
	}
	if r.prefix == "" {
		r.prefix = defaultKeyPrefix
	}
	if r.timeout == 0 {
		r.timeout = defaultTimeout
	}
	if o.URL != "" {
		if err := o.checkURLAlone(); err != nil {
			return resolved{}, err
		}
		if err := r.readURL(o.URL); err != nil {
			return resolved{}, err
		}
	}
	return r, r.check()
}

// checkURLAlone refuses options that the URL already says.
func (o Options) checkURLAlone() error {
	switch {
	case len(o.Addresses) > 0:
		return errors.New("give either a URL or addresses")
	case o.Username != "" || o.Password != "":
		return errors.New("with a URL, the user name and the password are part of it")
	case o.DB != 0:
		return errors.New("with a URL, the database is part of it")
	case o.SentinelMaster != "":
		return errors.New("sentinels are given by their addresses, not by a URL")
	}
	return nil
}

func (r resolved) check() error {
	switch {
	case len(r.addresses) == 0:
		return errors.New("no Redis address")
	case r.cluster && r.master != "":
		return errors.New("cluster and sentinel exclude each other")
	case len(r.addresses) > 1 && !r.cluster && r.master == "":
		return errors.New("several Redis addresses need cluster or sentinel: a primary and its replicas are not a store")
	case r.cluster && r.db != 0:
		return errors.New("a Redis Cluster has no database but 0")
	case r.db < 0:
		return errors.New("the number of the database is negative")
	case r.timeout < 0:
		return errors.New("the timeout is negative")
	case r.master == "" && (r.sentinelUsername != "" || r.sentinelPassword != ""):
		return errors.New("a login for sentinels needs the name of the master that they watch")
	}
	for i, address := range r.addresses {
		if !validAddress(address) {
			return fmt.Errorf("address %d is neither host:port nor the path of a socket", i+1)
		}
	}
	return checkPrefix(r.prefix)
}

func checkPrefix(prefix string) error {
	for _, c := range prefix {
		switch {
		case c == '{' || c == '}':
			return errors.New("the key prefix holds a brace: it would pin every event to one hash slot")
		case unicode.IsSpace(c) || unicode.IsControl(c) || c == unicode.ReplacementChar:
			return errors.New("the key prefix holds a blank or a control character")
		}
	}
	if strings.Trim(prefix, ":!") == "" {
		return errors.New("the key prefix is empty")
	}
	return nil
}
