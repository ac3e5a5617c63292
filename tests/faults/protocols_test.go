package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// transports speak one protocol each.
var transports = map[string]func() http.RoundTripper{
	"HTTP/1.1": func() http.RoundTripper { return overTCP((*http.Protocols).SetHTTP1) },
	"HTTP/2":   func() http.RoundTripper { return overTCP((*http.Protocols).SetHTTP2) },
	"HTTP/3":   func() http.RoundTripper { return &http3.Transport{TLSClientConfig: anyCertificate()} },
}

// overTLS makes a gateway speak all of them.
var overTLS = []harness.Option{harness.WithTLS(), harness.WithServer("protocols h3")}

func overTCP(speak func(*http.Protocols, bool)) http.RoundTripper {
	t := &http.Transport{TLSClientConfig: anyCertificate(), Protocols: new(http.Protocols)}
	speak(t.Protocols, true)
	return t
}

// anyCertificate trusts everybody: the certificate is made for the test.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// call is a delivery on its way.
type call struct {
	hangUp context.CancelFunc
	answer chan string // status, word and protocol, or an error
}

// begin sends a delivery and does not wait.
func begin(t *testing.T, rt http.RoundTripper, url string, d *harness.Delivery) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, d.Method, url+d.Path, bytes.NewReader(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = d.Header.Clone()
	r.GetBody = nil
	c := &call{cancel, make(chan string, 1)}
	go func() {
		resp, err := rt.RoundTrip(r)
		if err != nil {
			c.answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		c.answer <- fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Webhook-Dedupe"), " ", resp.Proto)
	}()
	return c
}
