package explain

import (
	"net/url"
	"slices"
	"strings"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// urlRepairs are other spellings of the URL that the sender was told. They help
// only where the signature covers it.
func urlRepairs(in Input) (rs []repair) {
	host := in.Request.Header.Get("Host")
	public := in.Config.PublicURL
	if public == "" && signsURL(in.Config) {
		public = "https://" + host
	}
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return nil
	}
	path, query, _ := strings.Cut(in.Request.URI, "?")
	full := *u
	if u.Path == "" || u.Path == "/" {
		full.Path = path
	}
	if u.RawQuery == "" {
		full.RawQuery = query
	}
	tried := map[string]bool{}
	if in.Config.PublicURL != "" {
		tried[full.String()] = true
	}
	add := func(text string, change func(*url.URL)) {
		changed := full
		change(&changed)
		if s := changed.String(); !tried[s] {
			tried[s] = true
			rs = append(rs, repair{Finding{"url", text}, func(a *attempt) {
				a.config.PublicURL = s
				if changed.RawQuery == "" { // or the request's would be added
					r := *a.request
					r.URI = path
					a.request = &r
				}
			}})
		}
	}
	if host != "" {
		add("The sender signs "+u.Scheme+" with the name in the Host header, and the path of the request: write that as public_url.", func(u *url.URL) { u.Host, u.Path = host, path })
	}
	add("The sender signs the URL without its query.", func(u *url.URL) { u.RawQuery = "" })
	add("The sender signs an http URL.", func(u *url.URL) { u.Scheme = "http" })
	add("The sender signs an https URL.", func(u *url.URL) { u.Scheme = "https" })
	add("The sender signs the URL without its port.", func(u *url.URL) { u.Host = u.Hostname() })
	add("The sender signs the URL with the port 443.", func(u *url.URL) { u.Host = u.Hostname() + ":443" })
	add("The sender signs the URL with a slash at the end of its path.", func(u *url.URL) { u.Path = strings.TrimSuffix(u.Path, "/") + "/" })
	add("The sender signs the URL without the slash at the end of its path.", func(u *url.URL) { u.Path = strings.TrimSuffix(u.Path, "/") })
	add("The sender signs the path of the request as it arrived.", func(u *url.URL) { u.Path = path })
	add("The sender signs the name with www in front.", func(u *url.URL) { u.Host = "www." + u.Host })
	add("The sender signs the name without www.", func(u *url.URL) { u.Host = strings.TrimPrefix(u.Host, "www.") })
	return rs
}

func signsURL(c verify.Config) bool {
	return slices.ContainsFunc(schemes(c), func(s verify.Scheme) bool {
		return strings.Contains(s.Payload, "{url}") || s.Form == "twilio"
	})
}
