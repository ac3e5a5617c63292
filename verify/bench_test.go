package verify

import (
	"fmt"
	"strings"
	"testing"
)

// jsonDoc is an event of about n bytes with its id at the front or the end.
func jsonDoc(n int, first bool) string {
	var items []string
	for i := 0; len(items)*38 < n-40; i++ {
		items = append(items, fmt.Sprintf(`{"n":%d,"text":"some \"text\"","x":[1,2]}`, i%10))
	}
	rest := `"data":[` + strings.Join(items, ",") + `]`
	if first {
		return `{"id":"evt_0123456789",` + rest + `}`
	}
	return `{` + rest + `,"id":"evt_0123456789"}`
}

func benchVerify(b *testing.B, body string, extra ...string) {
	v := mustNew(b, Config{Sender: "stripe", Secrets: append([]Secret{{Value: testSecret}}, secretList(extra)...)})
	h, err := v.Sign(SignInput{Body: []byte(body), Now: noon})
	if err != nil {
		b.Fatal(err)
	}
	r := &Request{Method: "POST", URI: "/", Header: h, Body: []byte(body)}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(r, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func secretList(values []string) (s []Secret) {
	for _, v := range values {
		s = append(s, Secret{Value: v})
	}
	return s
}

func BenchmarkVerify1KB(b *testing.B)           { benchVerify(b, strings.Repeat("x", 1024)) }
func BenchmarkVerify1KBTwoSecrets(b *testing.B) { benchVerify(b, strings.Repeat("x", 1024), "other") }
func BenchmarkVerify100KB(b *testing.B)         { benchVerify(b, strings.Repeat("x", 100<<10)) }

func BenchmarkVerifyStandardWebhooks1KB(b *testing.B) {
	v := preset(b, "standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	body := []byte(strings.Repeat("x", 1024))
	h, err := v.Sign(SignInput{ID: "msg_1", Body: body, Now: noon})
	if err != nil {
		b.Fatal(err)
	}
	r := &Request{Method: "POST", URI: "/", Header: h, Body: body}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(r, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyForgedManySignatures(b *testing.B) {
	v := preset(b, "paymos", testSecret)
	r := post("{}", "X-Webhook-Signature: t=1767225600"+strings.Repeat(",v1="+sign("x", ""), 10000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(r, noon); err == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkEventIDJSON(b *testing.B) {
	for _, c := range []struct {
		name  string
		size  int
		first bool
	}{{"1KB/first", 1024, true}, {"1KB/last", 1024, false}, {"1MB/last", 1 << 20, false}} {
		b.Run(c.name, func(b *testing.B) {
			v := jsonVerifier(b, "id")
			r := &Request{Body: []byte(jsonDoc(c.size, c.first))}
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.EventID(r, Result{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSignedDigest1KB(b *testing.B) {
	v := preset(b, "github", testSecret)
	r := &Request{Body: []byte(strings.Repeat("x", 1024))}
	b.ReportAllocs()
	for b.Loop() {
		v.SignedDigest(r, Result{})
	}
}
