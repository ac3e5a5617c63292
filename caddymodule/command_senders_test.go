package caddymodule

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestEverySenderIsListed(t *testing.T) {
	var out bytes.Buffer
	if err := listSenders(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, name := range verify.Senders() {
		if !strings.HasPrefix(lines[i+1], name+" ") {
			t.Errorf("%s is not in line %d: %s", name, i+1, lines[i+1])
		}
	}
}

func TestSenderThatIsNotOfferedIsRefusedWithTheReason(t *testing.T) {
	for name, want := range map[string]string{"mollie": "lose events", "strype": "unknown sender"} {
		var out bytes.Buffer
		if code, err := printSender(&out, name); code == 0 || err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %d, %v, %s", name, code, err, &out)
		}
		if _, err := adaptRoute(t, "webhook_dedupe "+name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s in a Caddyfile: %v", name, err)
		}
	}
}

// printed is the route that the command prints for a sender; nil if it says that
// there is none.
func printed(t *testing.T, sender string) *Handler {
	t.Helper()
	var out bytes.Buffer
	if code, err := printSender(&out, sender); code != 0 || err != nil {
		t.Fatal(err)
	}
	s, _ := verify.SenderNamed(sender)
	if len(customRoutes(s)) == 0 {
		if !strings.Contains(out.String(), "There is no equivalent") {
			t.Errorf("it does not say why there is no route:\n%s", &out)
		}
		return nil
	}
	setSecret(t, out.String(), secretFor(sender))
	return provisioned(t, out.String())
}

// setSecret sets the variable that a printed route takes its secret from.
func setSecret(t *testing.T, route, secret string) {
	t.Helper()
	for line := range strings.Lines(route) {
		if strings.HasPrefix(strings.TrimSpace(line), "secret ") {
			name, _, _ := strings.Cut(strings.TrimPrefix(strings.Fields(line)[1], "{env."), "}")
			t.Setenv(name, secret)
		}
	}
}

// A sender with several schemes has a block for each: the first as it is, and
// the others as comments.
func TestEverySchemeOfASenderIsPrinted(t *testing.T) {
	public := "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="
	for sender, blocks := range map[string][]struct{ when, header, secret string }{
		"svix":              {{"for signatures in the header svix-signature", "svix-signature", secretFor("svix")}, {"for signatures in the header webhook-signature", "webhook-signature", secretFor("svix")}},
		"gitlab":            {{"if the secret begins with `whsec_`", "webhook-signature", secretFor("svix")}, {"if it does not", "X-Gitlab-Token", "plain"}},
		"standard-webhooks": {{"for signatures in the header webhook-signature", "webhook-signature", secretFor("svix")}, {"if the secret is a public key; write it without `whpk_`", "webhook-signature", public}},
	} {
		var out bytes.Buffer
		if code, err := printSender(&out, sender); code != 0 || err != nil {
			t.Fatal(err)
		}
		_, route, _ := strings.Cut(out.String(), "# The route that ")
		for i, part := range strings.Split(route, "# The same") {
			if i == len(blocks) {
				t.Fatalf("%s: more than %d blocks", sender, i)
			}
			b := blocks[i]
			when, block, _ := strings.Cut(part, ":\n")
			if i > 0 {
				block = strings.ReplaceAll("\n"+block, "\n# ", "\n")
			}
			setSecret(t, block, b.secret)
			h := provisioned(t, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(block), "#")))
			if !strings.HasSuffix(when, " "+b.when) || h.Signature.Headers[0] != b.header {
				t.Errorf("%s: block %d is %q, for the header %s", sender, i, when, h.Signature.Headers[0])
			}
		}
		if n := strings.Count(route, "# The same") + 1; n != len(blocks) {
			t.Errorf("%s: %d blocks", sender, n)
		}
	}
}

// notPrinted are the senders that no signature block can say.
var notPrinted = []string{"adyen", "mailgun", "twilio"}

func TestPrintedRouteIsWhatThePresetStandsFor(t *testing.T) {
	for _, sender := range verify.Senders() {
		t.Run(sender, func(t *testing.T) {
			h := printed(t, sender)
			if (h == nil) != slices.Contains(notPrinted, sender) {
				t.Fatalf("printed: %v", h != nil)
			}
			if h == nil {
				return
			}
			s, _ := verify.SenderNamed(sender)
			lines := "secret " + secretFor(sender) + "\npublic_url https://example.com\n"
			if s.Authenticator != "" {
				lines = "oidc {\naudience a\nemail b\n}\n"
			}
			if s.NoEventID != "" {
				lines += "event_id none\n"
			}
			want := provisioned(t, "webhook_dedupe "+sender+" {\n"+lines+"}")
			if h.Source != want.Source || h.TTL != want.TTL || *h.Wait != *want.Wait || h.OnReusedID != want.OnReusedID || h.ReplayGuard != want.ReplayGuard || h.Duplicate != want.Duplicate {
				t.Errorf("the route is\n%+v\nand the preset's\n%+v", h, want)
			}
			if want.RetryWindow > 0 && h.RetryWindow != want.RetryWindow || h.verifier.Tolerance() != want.verifier.Tolerance() {
				t.Errorf("window %v and %v, tolerance %v and %v", h.RetryWindow, want.RetryWindow, h.verifier.Tolerance(), want.verifier.Tolerance())
			}
			if !slices.Equal(h.handshakes, want.handshakes) {
				t.Errorf("handshakes %v and %v", h.handshakes, want.handshakes)
			}
		})
	}
}

func TestPrintedRouteJudgesAsThePresetDoes(t *testing.T) {
	routes := map[string]*Handler{}
	judged := 0
	for _, x := range vectors(t) {
		h, known := routes[x.Scheme]
		if !known {
			h = printed(t, x.Scheme)
			routes[x.Scheme] = h
		}
		if h == nil {
			continue
		}
		judged++
		preset, custom := x.config(), x.config()
		preset.Sender = x.Scheme
		preset.EventID = nil
		if s, _ := verify.SenderNamed(x.Scheme); s.NoEventID != "" {
			preset.EventID = h.EventID
		}
		custom.Scheme, custom.SecretFormat, custom.EventID = h.Signature, h.SecretFormat, h.EventID
		if want, got := x.verdict(t, preset), x.verdict(t, custom); got != want {
			t.Errorf("%s: the preset says %q, the printed route %q", x.ID, want, got)
		}
	}
	if judged < 200 {
		t.Errorf("%d vectors only", judged)
	}
}

// vector is one known delivery.
type vector struct {
	ID, Scheme, Method, URL, Body, Secret string
	Headers                               map[string]string
	BodyB64                               string `json:"body_b64"`
	Now                                   int64
}

func vectors(t *testing.T) (vs []vector) {
	t.Helper()
	data, err := os.ReadFile("../verify/testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &vs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func (x *vector) config() verify.Config {
	u, _ := url.Parse(x.URL)
	return verify.Config{
		PublicURL: u.Scheme + "://" + u.Host, Secrets: []verify.Secret{{Value: x.Secret}},
		Tolerance: verify.ToleranceOff, // the vectors are of all times
	}
}

// verdict is the reason for a refusal, or the event's id.
func (x *vector) verdict(t *testing.T, c verify.Config) string {
	t.Helper()
	v, err := verify.New(c)
	if err != nil {
		return err.Error()
	}
	u, _ := url.Parse(x.URL)
	r := &verify.Request{Method: or(x.Method, "POST"), URI: u.RequestURI(), Header: http.Header{}, Body: []byte(x.Body)}
	for name, value := range x.Headers {
		r.Header.Set(name, value)
	}
	if x.BodyB64 != "" {
		if r.Body, err = base64.StdEncoding.DecodeString(x.BodyB64); err != nil {
			t.Fatal(err)
		}
	}
	res, err := v.Verify(r, time.Unix(x.Now, 0))
	if err != nil {
		return verify.Reason(err)
	}
	ids, err := v.EventIDs(r, res)
	if err != nil {
		return verify.Reason(err)
	}
	var texts []string
	for _, id := range ids {
		texts = append(texts, "id "+id.Text)
	}
	return strings.Join(texts, " ")
}

func TestPageOfSendersIsUpToDate(t *testing.T) {
	var page bytes.Buffer
	if err := sendersPage(&page); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("../docs/senders.md")
	if err != nil || !bytes.Equal(written, page.Bytes()) {
		t.Errorf("docs/senders.md is stale (%v): write it with `caddy webhook-dedupe senders --markdown > docs/senders.md`", err)
	}
	// What stands in angle brackets outside of code is taken for HTML, and not shown.
	for i, code := range strings.Split(page.String(), "`") {
		if i%2 == 0 && strings.Contains(code, "<") {
			t.Errorf("HTML in %q", code)
		}
	}
	for _, want := range []string{"\n## stripe\n", "**not published**", "(assumed)", "(from memory)", "sender `adyen`"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}

func TestREADMENamesEverySender(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range verify.Senders() {
		if !bytes.Contains(readme, []byte("`"+name+"`")) {
			t.Errorf("%s is not in the README", name)
		}
	}
}

func TestSpansAreReadAgain(t *testing.T) {
	for d, want := range map[time.Duration]string{
		72 * time.Hour: "3d", 16*time.Hour + 3*time.Minute: "16h3m", 155 * time.Second: "2m35s", 5 * time.Minute: "5m",
		4500 * time.Millisecond: "4.5s", 26 * time.Hour: "26h", 0: "0s", 20 * time.Second: "20s", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
