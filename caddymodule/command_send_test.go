package caddymodule

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

// receiver answers with a status and verifies what it gets.
type receiver struct {
	*httptest.Server
	ids    []string
	bodies []string
}

func newReceiver(t *testing.T, sender string, status int) *receiver {
	t.Helper()
	var v *verify.Verifier
	rec := new(receiver)
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := &verify.Request{Method: r.Method, URI: r.RequestURI, Header: r.Header, Body: body}
		res, err := v.Verify(req, time.Now())
		if err != nil {
			t.Errorf("%s: %v", sender, err)
		}
		ids, err := v.EventIDs(req, res)
		if err != nil {
			t.Errorf("%s: %v", sender, err)
		}
		for _, id := range ids {
			rec.ids = append(rec.ids, id.Text)
		}
		rec.bodies = append(rec.bodies, string(body))
		w.Header().Set(resultHeader, "first")
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "received\n")
	}))
	t.Cleanup(rec.Close)
	var err error
	if v, err = verify.New(configFor(sender, rec.URL)); err != nil {
		t.Fatal(err)
	}
	return rec
}

// configFor is a route with a preset, which has written what the preset leaves
// to the route.
func configFor(sender, url string) verify.Config {
	s, _ := verify.SenderNamed(sender)
	c := verify.Config{Sender: sender, PublicURL: url, Secrets: []verify.Secret{{Value: secretFor(sender)}}}
	if s.NoEventID != "" {
		c.EventID = []verify.IDSource{{Kind: verify.NoID}}
	}
	return c
}

// secretFor is a secret in the sender's format.
func secretFor(sender string) string {
	s, known := verify.SenderNamed(sender)
	if !known || s.SecretFormat == verify.Text && len(s.Schemes) > 0 && s.Schemes[0].Algorithm == "" {
		return secret
	}
	return verify.SampleSecret(sender)
}

func TestSendSignsAsEverySender(t *testing.T) {
	for _, sender := range verify.Senders() {
		facts, _ := verify.SenderNamed(sender)
		if facts.Authenticator != "" {
			continue // nobody but the issuer signs
		}
		r := newReceiver(t, sender, 200)
		var out bytes.Buffer
		s := sending{sender: sender, secret: secretFor(sender), url: r.URL + "/hook", id: "evt_7", method: "POST", timeout: patience}
		for range 2 { // a second time is a duplicate
			if code, err := s.run(&out); code != 0 || err != nil {
				t.Errorf("%s: exit status %d, %v", sender, code, err)
			}
		}
		wants := []string{"status: 200 OK\n", "Webhook-Dedupe: first\n", "Retry-After: 7\n", "\nreceived\n"}
		if facts.NoEventID == "" {
			wants = append(wants, "event id: "+strings.Join(r.ids[:1], "")+"\n")
			if len(r.ids) != 2 || r.ids[0] != r.ids[1] || !strings.Contains(r.ids[0], "evt_7") {
				t.Errorf("%s: got ids %q", sender, r.ids)
			}
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in the output:\n%s", sender, want, &out)
			}
		}
		if strings.Contains(out.String(), secretFor(sender)) {
			t.Errorf("the secret is in the output")
		}
	}
}

func TestSendMakesANewIDEachTime(t *testing.T) {
	r := newReceiver(t, "stripe", 200)
	for range 2 {
		s := sending{sender: "stripe", secret: secret, url: r.URL, method: "POST"}
		if _, err := s.run(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.ids) != 2 || r.ids[0] == r.ids[1] || !strings.HasPrefix(r.ids[0], "evt_") {
		t.Errorf("got %q", r.ids)
	}
}

func TestSendReadsFilesAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	secretFile, bodyFile := filepath.Join(dir, "secret"), filepath.Join(dir, "body")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secretFile, secret+"\r\n")
	write(bodyFile, `{"id":"evt_file"} `)
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	var err error
	if os.Stdin, err = os.Open(bodyFile); err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, "stripe", 200)
	for _, body := range []string{"@" + bodyFile, "@-", `{"id":"evt_file"} `} {
		s := sending{sender: "stripe", secret: "@" + secretFile, url: r.URL, body: body, method: "POST"}
		if code, err := s.run(io.Discard); code != 0 || err != nil {
			t.Errorf("%s: exit status %d, %v", body, code, err)
		}
		if got := r.bodies[len(r.bodies)-1]; got != `{"id":"evt_file"} ` {
			t.Errorf("%s: sent %q", body, got)
		}
	}
}

func TestSendFailsUnlessTheAnswerIsA2xx(t *testing.T) {
	for status, ok := range map[int]bool{200: true, 204: true, 302: false, 401: false, 503: false} {
		r := newReceiver(t, "stripe", status)
		cmd := sendCommand()
		cmd.SetArgs([]string{"--sender", "stripe", "--secret", secret, "--url", r.URL})
		cmd.SetErr(io.Discard)
		quiet(t, func() {
			// Caddy's exit status is 0 exactly if the command returns no error.
			if err := cmd.Execute(); (err == nil) != ok {
				t.Errorf("%d: %v", status, err)
			}
		})
		if len(r.ids) != 1 {
			t.Errorf("%d: sent %d times", status, len(r.ids))
		}
	}
}

func TestSendTellsWhatIsMissing(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct{ args, want string }{
		"no flags":       {"", "required flag"},
		"unknown sender": {"--sender x --secret y --url http://z", "unknown sender"},
		"no secret":      {"--sender stripe --secret @ --url http://z", "name of a file"},
		"no such file":   {"--sender stripe --secret @/no/such/file --url http://z", "no such file"},
		"empty secret":   {"--sender stripe --secret= --url http://z", "empty"},
		"no URL":         {"--sender stripe --secret y --url ::", "no absolute URL"},
		"nobody there":   {"--sender stripe --secret y --url " + gone.URL, "refused"},
		"an argument":    {"--sender stripe --secret y --url http://z more", "unknown command"},
	} {
		var stderr bytes.Buffer
		cmd := sendCommand()
		cmd.SetArgs(strings.Fields(c.args))
		cmd.SetErr(&stderr)
		cmd.SetOut(io.Discard)
		err := cmd.Execute()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "no flags" && !strings.Contains(stderr.String(), c.want) {
			t.Errorf("the user is told %q", stderr.String())
		}
	}
}

// quiet runs f with the process's standard output thrown away.
func quiet(t *testing.T, f func()) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = null
	defer func() { os.Stdout = stdout; null.Close() }()
	f()
}
