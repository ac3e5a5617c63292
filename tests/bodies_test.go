package tests

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// github signs any bytes and has its id in a header.
func githubSite(u *harness.Upstream, lines ...string) string {
	return route("/pay", "github", lines...) + "reverse_proxy " + u.Addr
}

// pattern is n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + i>>16)
	}
	return b
}

func TestBodyReachesTheUpstreamByteForByte(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, githubSite(u))
	s := harness.NewSender(t, "github")
	for _, size := range []int{0, 1, 512, 64<<10 + 1, 5 << 20, 25 << 20} {
		for _, p := range harness.Protocols {
			for _, chunked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes, %s, chunked %v", size, p, chunked), func(t *testing.T) {
					t.Parallel()
					d := s.WithBody(harness.Unique("evt"), pattern(size))
					d.Chunked = chunked
					if a := g.Begin(t, p, d).Answer(); a.String() != "200 first" {
						t.Fatalf("the sender got %q", a)
					}
					assertBody(t, u, d)
					if a := g.Begin(t, p, d).Answer(); a.String() != "200 duplicate" {
						t.Fatalf("the sender of the copy got %q", a)
					}
				})
			}
		}
	}
}

// assertBody checks that an event's only request had the sender's body, and its
// exact length.
func assertBody(t *testing.T, u *harness.Upstream, d *harness.Delivery) {
	t.Helper()
	seen := u.Requests(d.Event)
	switch {
	case len(seen) != 1:
		t.Fatalf("the event made %d requests", len(seen))
	case !bytes.Equal(seen[0].Body, d.Body):
		t.Fatalf("the upstream got %d other bytes than the %d that were sent", len(seen[0].Body), len(d.Body))
	case seen[0].Length != int64(len(d.Body)):
		t.Errorf("the upstream was told of %d bytes, not of %d", seen[0].Length, len(d.Body))
	}
}

func TestBodyOfAnyContentIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, githubSite(u))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, `{"compressed":true}`)
	w.Close()
	for name, c := range map[string]struct {
		contentType, encoding string
		body                  []byte
	}{
		"odd spaces":      {"application/json", "", []byte("{ \"b\" : 1,\n  \"a\":[ 2 ,3 ], \"n\":1.0,\"e\":1e2}\r\n\x00")},
		"unusual text":    {"application/json", "", []byte("{\"a\":\"\U0001F9FE \\ud83e\\uddfe \u2028 \\/ \xff\"}")},
		"a form":          {"application/x-www-form-urlencoded", "", []byte("payload=%7B%22ref%22%3A%22x%22%7D&x=a+b&&=")},
		"an old charset":  {"application/x-www-form-urlencoded; charset=windows-1252", "", []byte("name=J%F6rg&raw=\xe9")},
		"gzip":            {"application/json", "gzip", zipped.Bytes()},
		"claims to be br": {"application/json", "br", []byte("not brotli at all")},
		"multipart":       {"multipart/form-data; boundary=x", "", []byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n")},
		"no type":         {"", "", []byte("\xef\xbb\xbfwith a mark in front")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), c.body).With("Content-Type", c.contentType)
			if c.encoding != "" {
				d = d.With("Content-Encoding", c.encoding)
			}
			g.Expect(t, d, "200 first")
			assertBody(t, u, d)
			seen := u.Requests(d.Event)[0]
			if got := seen.Header.Get("Content-Type"); got != c.contentType {
				t.Errorf("Content-Type is %q, want %q", got, c.contentType)
			}
			if got := seen.Header.Get("Content-Encoding"); got != c.encoding {
				t.Errorf("Content-Encoding is %q, want %q", got, c.encoding)
			}
		})
	}
}

func TestTrailersOfAChunkedBodyDoNoHarm(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, githubSite(u))
	for _, p := range harness.Protocols {
		d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), pattern(100_000)).InChunks()
		d.Trailer = map[string][]string{"X-Checksum": {"abc"}}
		if a := g.Begin(t, p, d).Answer(); a.String() != "200 first" {
			t.Fatalf("the sender got %q", a)
		}
		assertBody(t, u, d)
	}
}

func TestBodyBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	const limit = 25 << 20
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, githubSite(u), harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), pattern(limit+1)).InChunks()
	g.Expect(t, d, "413")
	// What announces its length is refused before all of it has come. (Go's server
	// wants to see some of it before it lets the answer go.)
	if a := g.SendRaw(t, d.Head(g.Host())+fmt.Sprintf("Content-Length: %d\r\n\r\n", limit+1)+strings.Repeat("x", 512<<10)); a.String() != "413" {
		t.Fatalf("the sender got %q", a)
	}
	assertReached(t, u, d.Event)
	if n := g.Metric("rejections_total", `reason="too_large"`); n != 2 {
		t.Errorf("%v deliveries are counted as too large", n)
	}
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
}

func TestBodiesBeyondTheMemoryForThemComeAgain(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, githubSite(u, "max_body 1MB"), harness.WithGlobal("webhook_dedupe {", "max_buffered 1MiB", "}"))
	s := harness.NewSender(t, "github")
	// The small one is refused before all of it has come. Over HTTP/2 the answer
	// always gets through; over HTTP/1 Go's server cuts the connection when a sender
	// that asked it to close it still writes.
	big, small := s.WithBody(harness.Unique("evt"), pattern(900_000)), s.WithBody(harness.Unique("evt"), pattern(200_000))
	latch := harness.NewLatch()
	u.On(big.Event, harness.After(latch, harness.Status(200)))
	call := g.Begin(t, harness.HTTP1, big)
	u.Await(t, big.Event, 1)
	if a := g.Begin(t, harness.HTTP2, small).Answer(); a.String() != "503" || a.Header.Get("Retry-After") == "" {
		t.Errorf("while the memory for bodies is taken the sender got %q with %v", a, a.Header)
	}
	if n := g.Metric("rejections_total", `reason="memory"`); n != 1 {
		t.Errorf("%v deliveries are counted as refused for memory", n)
	}
	latch.Release()
	if a := call.Answer(); a.String() != "200 first" {
		t.Fatalf("the delivery that has the memory got %q", a)
	}
	g.RetryUntil(t, small, "200 first", "503")
	assertReached(t, u, small.Event, "first")
}

func TestBodyThatIsCutOffReachesNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, githubSite(u), harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	// The part that comes is signed in itself: who read no further would pass it.
	d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), []byte("{}"))
	for i, rest := range []string{
		"Content-Length: 50\r\n\r\n{}",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n5\r\nab",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nnonsense\r\n",
	} {
		conn := g.Dial(t)
		if _, err := io.WriteString(conn, d.Head(g.Host())+rest); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if a := harness.ReadAnswer(conn); a.String() != "400" {
			t.Errorf("%q: the sender got %q", rest, a)
		}
		harness.Eventually(t, "the gateway calls the body incomplete", func() bool {
			return g.Metric("rejections_total", `reason="incomplete_body"`) == float64(i+1)
		})
	}
	assertNothingHappened(t, u, g, monitor, d)
}

func TestBodyThatIsResetReachesNothing(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	r := harness.StartRedis(t)
	g := harness.StartGateway(t, githubSite(u), harness.WithRedis(r.Addr))
	monitor := r.Monitor(t)
	for i, p := range harness.Protocols {
		d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), pattern(100_000))
		d.Stream = io.MultiReader(bytes.NewReader(d.Body), failingReader{})
		if a := g.Begin(t, p, d).Answer(); a.Err == nil && a.Status != 400 {
			t.Fatalf("the sender got %q", a)
		}
		harness.Eventually(t, "the gateway calls the body incomplete", func() bool {
			return g.Metric("rejections_total", `reason="incomplete_body"`) == float64(i+1)
		})
		assertNothingHappened(t, u, g, monitor, d)
	}
}

// failingReader breaks a request off in the middle of its body.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the sender gives up") }

func assertNothingHappened(t *testing.T, u *harness.Upstream, g *harness.Gateway, monitor *harness.RedisMonitor, d *harness.Delivery) {
	t.Helper()
	assertReached(t, u, d.Event)
	if used := monitor.Commands(t); len(used) > 0 {
		t.Errorf("Redis was asked: %q", used)
	}
	g.AwaitLog(t, "delivery", "incomplete body")
	if n := g.Metric("rejections_total", `reason="forged"`); n != 0 {
		t.Error("a cut-off body is called forged")
	}
}

func TestExpectContinueIsAnsweredAndNotTakenForTheAnswer(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, githubSite(u))
	for _, p := range harness.Protocols {
		d := harness.NewSender(t, "github").WithBody(harness.Unique("evt"), pattern(200_000)).With("Expect", "100-continue")
		u.On(d.Event, harness.Interim(harness.Status(500), 100, 103), harness.Interim(harness.Status(200), 100))
		if a := g.Begin(t, p, d).Answer(); a.String() != "500 first" {
			t.Fatalf("the sender got %q", a)
		}
		if a := g.Begin(t, p, d).Answer(); a.String() != "200 retry" {
			t.Fatalf("the sender got %q", a)
		}
		g.Expect(t, d, "200 duplicate")
		if body := u.Requests(d.Event)[1].Body; !bytes.Equal(body, d.Body) {
			t.Errorf("the upstream got %d other bytes than the %d that were sent", len(body), len(d.Body))
		}
	}
}
