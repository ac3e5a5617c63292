package caddymodule

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// parseGlobalOption parses the global option. Syntax:
//
//	webhook_dedupe {
//		store         <module> ...
//		max_buffered  <size>
//	}
func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the webhook_dedupe option is given twice")
	}
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: appName, Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from the global option.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the option's name
	if err := none(d); err != nil {
		return err
	}
	for d.NextBlock(0) {
		switch d.Val() {
		case "store":
			if a.StoreRaw != nil {
				return d.Err("one configuration has one store")
			}
			var err error
			if a.StoreRaw, err = parseStore(d); err != nil {
				return err
			}
		case "max_buffered":
			if err := one(d, sizeTo(d, &a.MaxBuffered)); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized webhook_dedupe option '%s'", d.Val())
		}
	}
	return nil
}

func parseStore(d *caddyfile.Dispenser) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, "http.webhook_dedupe.stores."+name)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, "type", name, nil), nil
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	store memory
func (*MemoryStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() || d.NextBlock(0) {
		return d.ArgErr()
	}
	return nil
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	store file [<directory>] {
//		sync everysec|always
//	}
func (s *FileStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		s.Directory = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() != "sync" {
			return d.Errf("unrecognized file store option '%s'", d.Val())
		}
		if err := one(d, func(v string) error { s.Sync = v; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	store redis {
//		address       <host:port...>
//		url           <redis url>
//		username      <name>
//		password      <value>
//		db            <n>
//		cluster
//		sentinel      <master name>
//		tls {
//			ca           <file>
//			certificate  <file>
//			key          <file>
//			server_name  <name>
//		}
//		key_prefix    <text>
//		timeout       <duration>
//	}
func (s *RedisStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := s.parseLine(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *RedisStore) parseLine(d *caddyfile.Dispenser) error {
	to := func(field *string) error {
		return one(d, func(v string) error { *field = v; return nil })
	}
	switch d.Val() {
	case "address":
		addresses := d.RemainingArgs()
		if len(addresses) == 0 {
			return d.ArgErr()
		}
		s.Addresses = append(s.Addresses, addresses...)
		return nil
	case "url":
		return to(&s.URL)
	case "username":
		return to(&s.Username)
	case "password":
		return to(&s.Password)
	case "db":
		return one(d, numberTo(d, &s.DB))
	case "cluster":
		s.Cluster = true
		return none(d)
	case "sentinel":
		return to(&s.Sentinel)
	case "tls":
		return s.parseTLS(d)
	case "key_prefix":
		return to(&s.KeyPrefix)
	case "timeout":
		return one(d, durationTo(d, &s.OperationTimeout))
	}
	return d.Errf("unrecognized redis store option '%s'", d.Val())
}

func (s *RedisStore) parseTLS(d *caddyfile.Dispenser) error {
	if err := none(d); err != nil {
		return err
	}
	s.TLS = new(RedisTLS)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		fields := map[string]*string{
			"ca": &s.TLS.CA, "certificate": &s.TLS.Certificate, "key": &s.TLS.Key, "server_name": &s.TLS.ServerName,
		}
		field, known := fields[d.Val()]
		if !known {
			return d.Errf("unrecognized tls option '%s'", d.Val())
		}
		if err := one(d, func(v string) error { *field = v; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
	_ caddyfile.Unmarshaler = (*FileStore)(nil)
	_ caddyfile.Unmarshaler = (*MemoryStore)(nil)
	_ caddyfile.Unmarshaler = (*RedisStore)(nil)
)
