package caddymodule

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
)

// proxied is a gateway in front of Caddy's own reverse_proxy.
func proxied(t *testing.T, options, address string) *gateway {
	t.Helper()
	return newGateway(t, `route {
		webhook_dedupe stripe {
			source $SOURCE
			secret $SECRET
			wait 0
			`+options+`
		}
		reverse_proxy `+strings.TrimPrefix(address, "http://")+`
	}`, nil)
}

// rawUpstream answers every connection with the given bytes once it has read a
// request, and hangs up.
func rawUpstream(t *testing.T, answer string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestRefusedConnectionIsNotSent(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	g := proxied(t, "", gone.URL)
	expect(t, g.send("stripe", "evt_1"), 502, "first")
	expect(t, g.send("stripe", "evt_1"), 502, "retry")
	if n := count(t, "outcomes_total", "source", g.source, "result", "not-sent"); n != 2 {
		t.Errorf("%v not sent", n)
	}
}

func TestProxyWithoutUpstreamsIsNotSent(t *testing.T) {
	g := newGateway(t, strings.Replace(stripeRoute, "upstream", `reverse_proxy {
		dynamic a {
			name     no.such.host.invalid
			port     1
			versions ipv4
			resolvers 127.0.0.1:1
		}
	}
	#`, 1), nil)
	resp := g.send("stripe", "evt_1")
	if resp.StatusCode != 503 && resp.StatusCode != 502 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.Failed {
		t.Errorf("the record is %v", s)
	}
}

func TestResetAfterTheRequestIsInDoubt(t *testing.T) {
	g := proxied(t, "", rawUpstream(t, ""))
	expect(t, g.send("stripe", "evt_1"), 502, "first")
	expect(t, g.send("stripe", "evt_1"), 503, "in-flight")
}

func TestAnswerCutOffIsInDoubt(t *testing.T) {
	for name, answer := range map[string]string{
		"by its length": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"in a chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := proxied(t, "", rawUpstream(t, answer))
			expect(t, g.send("stripe", "evt_1"), 502, "first")
			if s := g.store.state(g.source + ":evt_1"); s != dedupe.InDoubt {
				t.Errorf("the record is %v", s)
			}
		})
	}
}

func TestSlowUpstreamIsInDoubt(t *testing.T) {
	over := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server would not see the gateway hang up
		<-r.Context().Done()
		close(over)
	}))
	defer up.Close()
	g := proxied(t, "upstream_timeout 50ms", up.URL)
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 504, "first")
	if resp.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	receive(t, over, "the gateway to hang up")
}

func TestInterimAnswersAreNotTheAnswer(t *testing.T) {
	g := proxied(t, "", rawUpstream(t, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"))
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 500, "first")
	if resp.Header.Get("Link") != "" {
		t.Error("a header of the interim answer came through")
	}
}

func TestUpgradeIsNoAcceptance(t *testing.T) {
	g := proxied(t, "", rawUpstream(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
	r := signed(t, "stripe", "evt_1")
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "x")
	expect(t, g.do(r), 502, "first")
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.InDoubt {
		t.Errorf("the record is %v", s)
	}
}

// TestAnswerThatRoutesKeepBackIsNoProofThatNothingWasSent: the upstream may have
// done the work.
func TestAnswerThatRoutesKeepBackIsNoProofThatNothingWasSent(t *testing.T) {
	address := rawUpstream(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	g := newGateway(t, `route {
		webhook_dedupe stripe {
			source $SOURCE
			secret $SECRET
		}
		reverse_proxy `+strings.TrimPrefix(address, "http://")+` {
			handle_response {
				vars x y
			}
		}
	}`, nil)
	expect(t, g.send("stripe", "evt_1"), 502, "first")
	if s := g.store.state(g.source + ":evt_1"); s != dedupe.InDoubt {
		t.Errorf("the record is %v", s)
	}
}

// TestPlaceholdersBehindTheGatewayShowWhatIsSetThere: as root does, which
// php_fastcgi and file_server read.
func TestPlaceholdersBehindTheGatewayShowWhatIsSetThere(t *testing.T) {
	g := newGateway(t, `route {
		vars before 1
		webhook_dedupe stripe {
			source $SOURCE
			secret $SECRET
		}
		handle {
			root * /srv/shop
			vars set 2
			map {path} {mapped} {
				default 3
			}
			respond "{vars.root} {vars.before} {vars.set} {mapped} {http.webhook_dedupe.event_id} {path}"
		}
	}`, nil)
	resp := g.send("stripe", "evt_1")
	expect(t, resp, 200, "first")
	if got, _ := io.ReadAll(resp.Body); string(got) != "/srv/shop 1 2 3 evt_1 /hook" {
		t.Errorf("the placeholders are %q", got)
	}
}
