package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// resolved are checked options with their defaults filled in and the URL taken
// apart.
type resolved struct {
	addresses        []string
	username         string
	password         string
	db               int
	cluster          bool
	master           string
	sentinelUsername string
	sentinelPassword string
	tls              *tls.Config
	prefix           string
	timeout          time.Duration
}

// identity is [Options.Identity].
func (r resolved) identity() string {
	addresses := slices.Clone(r.addresses)
	slices.Sort(addresses)
	mode := "server"
	switch {
	case r.cluster:
		mode = "cluster"
	case r.master != "":
		mode = fmt.Sprintf("sentinel %q", r.master)
	}
	return fmt.Sprintf("%s %q user %q db %d prefix %q", mode, addresses, r.username, r.db, r.prefix)
}

// name is what findings call the server.
func (r resolved) name() string {
	if r.master != "" {
		return r.master
	}
	return strings.Join(r.addresses, ",")
}

// sameClient reports whether a client made from r serves other as well.
// Configurations of TLS cannot be compared: two that are not one differ.
func (r resolved) sameClient(other resolved) bool {
	return r.password == other.password &&
		r.sentinelUsername == other.sentinelUsername && r.sentinelPassword == other.sentinelPassword &&
		r.tls == other.tls && r.timeout == other.timeout
}

// secrets are the texts that no error may show.
func (r resolved) secrets() []string {
	return slices.DeleteFunc([]string{r.password, r.sentinelPassword}, func(s string) bool { return s == "" })
}

// errURL is the same for every mistake: what a parser quotes of a broken URL
// may be a piece of the password.
var errURL = errors.New("not a Redis URL: want redis://[user:password@]host[:port][/db], rediss://... or " +
	"unix://[user:password@]/path[?db=n]; a password with special characters has to be percent-encoded")

// urlOptions are the query parameters that are taken from a URL. go-redis knows
// more, but those would undo settings that the store depends on.
var urlOptions = []string{"db", "addr", "skip_verify"}

func (r *resolved) readURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || (u.Hostname() == "" && u.Scheme != "unix") {
		return errURL // a missing host would be read as localhost
	}
	for name := range u.Query() {
		if !slices.Contains(urlOptions, name) {
			return fmt.Errorf("a Redis URL may hold no options but %s", strings.Join(urlOptions, ", "))
		}
	}
	if r.cluster {
		return r.readClusterURL(text, u)
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return errURL
	}
	r.addresses, r.username, r.password, r.db = []string{o.Addr}, o.Username, o.Password, o.DB
	r.readURLTLS(o.TLSConfig)
	return nil
}

func (r *resolved) readClusterURL(text string, u *url.URL) error {
	if strings.Trim(u.Path, "/") != "" || u.Query().Has("db") {
		return errors.New("a Redis Cluster has no database but 0: its URL ends with the port")
	}
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return errURL
	}
	r.addresses, r.username, r.password = o.Addrs, o.Username, o.Password
	r.readURLTLS(o.TLSConfig)
	return nil
}

// readURLTLS switches TLS on if the URL does; configured settings go first.
func (r *resolved) readURLTLS(fromURL *tls.Config) {
	if r.tls == nil {
		r.tls = fromURL
	}
}

// validAddress accepts host:port and the absolute path of a socket, and no
// URLs, which somebody might put here with a password in them.
func validAddress(address string) bool {
	if strings.HasPrefix(address, "/") {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsAny(host, "@/ ") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
