package explain

import (
	"net/url"
	"strings"
)

// urlRepairs are other spellings of the URL that the sender was told. They help
// only where the signature covers it.
func urlRepairs(in Input) (rs []repair) {
	if in.Config.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(in.Config.PublicURL)
	if err != nil {
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
	add := func(text string, change func(*url.URL)) {
		changed := full
		change(&changed)
		if s := changed.String(); s != full.String() {
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
