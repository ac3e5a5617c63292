package caddymodule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsComeFromTheEnvironmentAndFiles(t *testing.T) {
	t.Setenv("TEST_SECRET", secret)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"{env.TEST_SECRET}", "{file." + file + "}", "whsec_{env.TEST_REST}"} {
		t.Setenv("TEST_REST", strings.TrimPrefix(secret, "whsec_"))
		h := provisioned(t, "webhook_dedupe stripe {\nsecret "+value+"\n}")
		stale := h.newDelivery(nil, signed(t, "stripe", "evt_1"), nil, longAgo)
		if stale.read() != nil || stale.authenticate() == nil {
			t.Error("a stale delivery passed")
		}
		fresh := h.newDelivery(nil, signedAt(t, "stripe", "evt_1", longAgo), nil, longAgo)
		if ref := fresh.read(); ref != nil {
			t.Fatal(ref.err)
		}
		if ref := fresh.authenticate(); ref != nil {
			t.Errorf("%s: %v", value, ref.err)
		}
	}
}

func TestResolvedSecretsStayOutOfTheConfiguration(t *testing.T) {
	t.Setenv("TEST_SECRET", "s3cr3t-value")
	h := provisioned(t, "webhook_dedupe stripe {\nsecret {env.TEST_SECRET}\nprevious_secret {env.TEST_SECRET}\n}")
	text, err := json.Marshal(h)
	if err != nil || strings.Contains(string(text), "s3cr3t-value") || !strings.Contains(string(text), "{env.TEST_SECRET}") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestPreviousSecretsThatEndedAreSkipped(t *testing.T) {
	for name, line := range map[string]string{
		"unset":     "previous_secret {env.TEST_UNSET}",
		"empty":     `previous_secret ""`,
		"past":      "previous_secret old until 2020-01-01T00:00:00Z",
		"past, env": "previous_secret old until {env.TEST_UNTIL}",
	} {
		t.Setenv("TEST_UNTIL", "2020-01-01T00:00:00Z")
		logs := newLogBook()
		h := provisionedWith(t, logs, stripe(line))
		if line := logs.last(t, "a previous secret is empty or past its time and is skipped"); line["previous_secret"] != 1.0 {
			t.Errorf("%s: the log says %v", name, line)
		}
		secrets, err := h.secrets()
		if err != nil || len(secrets) != 1 {
			t.Errorf("%s: %d secrets, %v", name, len(secrets), err)
		}
	}
	h := provisioned(t, stripe("previous_secret old until 2999-01-01T00:00:00+02:00"))
	if secrets, err := h.secrets(); err != nil || len(secrets) != 2 || secrets[1].Until.IsZero() {
		t.Errorf("got %v, %v", secrets, err)
	}
}
