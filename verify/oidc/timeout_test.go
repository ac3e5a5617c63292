package oidc

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// slow is a server that never answers, or never ends its answer.
type slow struct{ answers bool }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.answers {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	pr, pw := io.Pipe()
	go func() {
		for {
			select {
			case <-r.Context().Done():
				pw.CloseWithError(r.Context().Err())
				return
			case <-time.After(time.Second):
				_, _ = pw.Write([]byte(" "))
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: pr, Request: r}, nil
}

func TestSlowServerOfKeysIsGivenUp(t *testing.T) {
	for name, server := range map[string]slow{"no answer": {}, "drops": {answers: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newKeySet("https://keys.example.com", func(error) {})
				s.client.Transport = server
				began := time.Now()
				_, err := s.find("key", began)
				if took := time.Since(began); !errors.Is(err, verify.ErrNoKeys) || took != fetchTimeout {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}
