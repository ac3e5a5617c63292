package verify

import (
	"errors"
	"net/url"
	"strings"
)

// publicURL is the URL that the sender was told, which {url} stands for. It
// comes from configuration only: a client can write any Host or forwarding
// header, and behind a proxy even honest ones are wrong.
type publicURL struct {
	text string
	// An origin is completed by the path and query of the request; a URL with a
	// path but no query by the query alone.
	origin, takesQuery bool
}

func parsePublicURL(text string) (publicURL, error) {
	if text == "" {
		return publicURL{}, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return publicURL{}, errors.New("public_url is no absolute http or https URL")
	}
	if u.User != nil || strings.Contains(text, "#") {
		return publicURL{}, errors.New("public_url must have no user and no fragment")
	}
	hasQuery := strings.Contains(text, "?")
	if !hasQuery && (u.Path == "" || u.Path == "/") {
		return publicURL{text: strings.TrimSuffix(text, "/"), origin: true, takesQuery: true}, nil
	}
	return publicURL{text: text, takesQuery: !hasQuery}, nil
}

// of returns the URL for a request, in two pieces.
func (p publicURL) of(uri string) (head, tail string) {
	if p.origin {
		return p.text, uri
	}
	if i := strings.IndexByte(uri, '?'); p.takesQuery && i >= 0 && i < len(uri)-1 {
		return p.text, uri[i:]
	}
	return p.text, ""
}
