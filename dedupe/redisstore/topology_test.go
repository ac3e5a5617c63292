package redisstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/dedupe"
	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// checkLife runs events through their life: enough of them to meet every node.
func checkLife(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			key := dedupe.Key("life", fmt.Sprintf("evt_%d", i), "")
			if err := live(ctx, s, key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	all.Wait()
}

func live(ctx context.Context, s *Store, key string) error {
	h := hold("own")
	if r, err := s.Claim(ctx, key, h, true); err != nil || !r.OwnedBy("own") {
		return fmt.Errorf("claim: %+v, %w", r, err)
	}
	if ok, err := s.Renew(ctx, key, h); err != nil || !ok {
		return fmt.Errorf("renew: %v, %w", ok, err)
	}
	if err := s.Release(ctx, key, h); err != nil {
		return err
	}
	if r, err := s.Claim(ctx, key, hold("next"), true); err != nil || !r.OwnedBy("next") || r.Attempt != 2 {
		return fmt.Errorf("claim after a failure: %+v, %w", r, err)
	}
	if v, err := s.Bind(ctx, key, "v", time.Hour); err != nil || v != "v" {
		return fmt.Errorf("bind: %v, %w", v, err)
	}
	if err := s.Complete(ctx, key, dedupe.Done{Mark: 5, TTL: time.Hour}); err != nil {
		return err
	}
	if r, err := s.Claim(ctx, key, h, true); err != nil || r.State != dedupe.Completed || r.Mark != 5 {
		return fmt.Errorf("claim of a done event: %+v, %w", r, err)
	}
	return nil
}

func TestClusterSpreadsEventsOverItsNodes(t *testing.T) {
	t.Parallel()
	nodes := harness.StartCluster(t, 0)
	seeds := []string{nodes[0].Addr, nodes[1].Addr}
	for name, o := range map[string]Options{
		"addresses": {Addresses: seeds, Cluster: true},
		"one seed":  {Addresses: seeds[:1], Cluster: true, KeyPrefix: "one"},
		"URL":       {URL: "redis://" + seeds[0] + "?addr=" + seeds[1], Cluster: true, KeyPrefix: "url"},
	} {
		t.Run(name, func(t *testing.T) { checkLife(t, open(t, o)) })
	}
	for i, node := range nodes {
		if node.Do("dbsize") == int64(0) {
			t.Errorf("node %d holds no event", i)
		}
	}
	s := open(t, Options{Addresses: seeds, Cluster: true})
	if err := s.Ping(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestSentinelLeadsToTheMaster(t *testing.T) {
	primary := harness.StartRedis(t)
	addr := harness.StartSentinel(t, primary, 1).Addr
	checkLife(t, open(t, Options{Addresses: []string{addr}, SentinelMaster: harness.Master}))
	if primary.Do("dbsize") == int64(0) {
		t.Error("the master holds no event")
	}
	wrong := open(t, Options{Addresses: []string{addr}, SentinelMaster: "nobody"})
	if _, err := wrong.Claim(context.Background(), "a:1", hold("own"), true); err == nil {
		t.Error("a master that no sentinel knows was found")
	}
}

func TestTLSIsSpokenAndTheServerIsChecked(t *testing.T) {
	roots, certFile, keyFile := makeCertificate(t)
	tlsPort := harness.FreePort(t)
	server := harness.StartRedis(t, "--tls-port", tlsPort, "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile, "--tls-auth-clients", "no")
	addr := "127.0.0.1:" + tlsPort
	checkLife(t, open(t, Options{Addresses: []string{addr}, TLS: &tls.Config{RootCAs: roots}}))
	checkLife(t, open(t, Options{URL: "rediss://" + addr, TLS: &tls.Config{RootCAs: roots}, KeyPrefix: "url"}))
	checkLife(t, open(t, Options{URL: "rediss://" + addr + "?skip_verify=true", KeyPrefix: "unchecked"}))
	for name, o := range map[string]Options{
		"unknown authority": {URL: "rediss://" + addr},
		"another name":      {Addresses: []string{addr}, TLS: &tls.Config{RootCAs: roots, ServerName: "other"}},
		"no TLS":            {Addresses: []string{addr}},
		"no TLS there":      {Addresses: []string{server.Addr}, TLS: &tls.Config{RootCAs: roots}},
	} {
		o.Timeout = time.Second // a server that waits for a handshake says nothing
		if err := open(t, o).Ping(context.Background()); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}

// Sentinel's client gets a dialer of the store's own.
func TestDialerOfSentinelsChecksTheServer(t *testing.T) {
	roots, certFile, keyFile := makeCertificate(t)
	tlsPort := harness.FreePort(t)
	harness.StartRedis(t, "--tls-port", tlsPort, "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile, "--tls-auth-clients", "no")
	dial := func(config *tls.Config) error {
		c, err := dialer(patience, config)(context.Background(), "tcp", "127.0.0.1:"+tlsPort)
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := dial(&tls.Config{RootCAs: roots}); err != nil {
		t.Error(err)
	}
	if dial(&tls.Config{}) == nil || dial(&tls.Config{RootCAs: roots, ServerName: "other"}) == nil {
		t.Error("a certificate that does not fit was accepted")
	}
}

// makeCertificate writes a certificate for 127.0.0.1 that signs itself.
func makeCertificate(t *testing.T) (roots *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redis of a test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(os.WriteFile(certFile, certPEM, 0o600), os.WriteFile(keyFile, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return roots, certFile, keyFile
}
