package harness

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Reload loads another site into the running process.
func (g *Gateway) Reload(site string) {
	g.t.Helper()
	if refusal := g.TryReload(site); refusal != "" {
		g.t.Fatalf("the configuration was refused: %s", refusal)
	}
}

// TryReload is Reload for a site that may be refused, and returns why.
func (g *Gateway) TryReload(site string) (refusal string) {
	g.t.Helper()
	return g.Load("text/caddyfile", g.Caddyfile(site))
}

// Load gives a whole configuration to the admin endpoint and returns why it was
// refused, if it was. After it, the servers of the configuration before take no
// connections any more: those that they had not accepted would be reset.
func (g *Gateway) Load(contentType, config string) (refusal string) {
	g.t.Helper()
	stopped, unchanged := g.printed(serversStop), g.printed(sameConfig)
	status, body := g.ask(func() (*http.Request, error) {
		r, err := http.NewRequest(http.MethodPost, "http://"+g.admin+"/load", strings.NewReader(config))
		if err == nil {
			r.Header.Set("Content-Type", contentType)
		}
		return r, err
	})
	if status != http.StatusOK {
		return body
	}
	Eventually(g.t, "the configuration before stops", func() bool {
		if g.printed(sameConfig) > unchanged {
			g.t.Fatal("Caddy reloads nothing if the configuration is the same: the test tests nothing")
		}
		return g.printed(serversStop) > stopped && g.listeners() <= 1
	})
	return ""
}

// listeners counts the sockets that listen on the gateway's port, as far as the
// system tells: around a reload there are two.
func (g *Gateway) listeners() (n int) {
	_, port, _ := net.SplitHostPort(g.addr)
	number, _ := strconv.Atoi(port)
	const listening = "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		sockets, _ := os.ReadFile(table)
		for line := range strings.Lines(string(sockets)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
				n++
			}
		}
	}
	return n
}

// What Caddy prints of a reload.
const (
	serversStop = `"msg":"servers shutting down`
	sameConfig  = `"msg":"config is unchanged`
)

// printed counts the lines of the process's output that hold text.
func (g *Gateway) printed(text string) (n int) {
	for _, line := range g.current().output() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// Admin fetches a path of the admin endpoint.
func (g *Gateway) Admin(path string) string {
	g.t.Helper()
	status, body := g.ask(func() (*http.Request, error) { return http.NewRequest(http.MethodGet, "http://"+g.admin+path, nil) })
	if status != http.StatusOK {
		g.t.Fatalf("GET %s: %d: %s", path, status, body)
	}
	return body
}

// adminClient keeps no connections: a reload closes them.
var adminClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask asks the admin endpoint, which drops connections when it is replaced
// itself, until it answers.
func (g *Gateway) ask(request func() (*http.Request, error)) (status int, body string) {
	g.t.Helper()
	Eventually(g.t, "the admin endpoint answers", func() bool {
		r, err := request()
		if err != nil {
			g.t.Fatal(err)
		}
		resp, err := adminClient.Do(r)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(b)
		return err == nil
	})
	return status, body
}
