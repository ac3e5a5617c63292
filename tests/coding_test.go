package tests

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// zipped is the content of r in gzip.
func zipped(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.Copy(w, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestSignatureOverTheDecodedBody(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	custom := signature("header X-Signature") + "\nevent_id json id"
	g := harness.StartGateway(t, route("/pay", "", custom, "signed_body decoded")+route("/wire", "", custom)+"reverse_proxy "+u.Addr)
	s := harness.CustomSender(t, verify.Config{
		Scheme: &verify.Scheme{Headers: []string{"X-Signature"}}, EventID: []verify.IDSource{{Kind: "json", Name: "id"}},
	})
	compressed := func(event string, signWire bool) *harness.Delivery {
		text := []byte(`{"id":"` + event + `"}`)
		wire := zipped(t, bytes.NewReader(text))
		signed := text
		if signWire {
			signed = wire
		}
		d := s.WithBody(event, signed).With("Content-Encoding", "gzip")
		d.Body = wire
		return d
	}
	for _, c := range []struct {
		path     string
		signWire bool
		first    string
		second   string
	}{
		{"/pay", false, "200 first", "200 duplicate"},
		{"/pay", true, "401", "401"},
		{"/wire", false, "401", "401"},
		{"/wire", true, "200 first", "200 duplicate"},
	} {
		d := compressed(harness.Unique("evt"), c.signWire).To(c.path)
		g.Expect(t, d, c.first)
		g.Expect(t, d, c.second)
		if c.first == "401" {
			assertReached(t, u, d.Event)
			continue
		}
		assertBody(t, u, d)
		if seen := u.Requests(d.Event)[0]; seen.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("the upstream got %v", seen.Header)
		}
	}
}

func TestCompressedGigabytesAreRefused(t *testing.T) {
	t.Parallel()
	u := harness.StartUpstream(t)
	g := harness.StartGateway(t, proxied(u, "signed_body decoded"))
	// Gzip of gzip of zeros would be smaller still; one layer is undone, so this
	// one is about a thousandth of what it holds.
	bomb := zipped(t, io.LimitReader(zeros{}, 200<<20))
	d := harness.NewSender(t, "paymos").WithBody(harness.Unique("evt"), []byte("{}")).With("Content-Encoding", "gzip")
	d.Body = bomb
	g.Expect(t, d, "413")
	assertReached(t, u, d.Event)
	if n := g.Metric("rejections_total", `reason="too_large"`); n != 1 {
		t.Errorf("%v deliveries are counted as too large", n)
	}
}
