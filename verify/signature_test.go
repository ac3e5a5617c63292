package verify

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestUppercaseHexIsAccepted(t *testing.T) {
	v := preset(t, "github", testSecret)
	mac := sign(testSecret, "{}")
	for _, m := range []string{mac, strings.ToUpper(mac), strings.ToUpper(mac[:20]) + mac[20:]} {
		accept(t, v, post("{}", "X-GitHub-Delivery: 1", "X-Hub-Signature-256: sha256="+m))
	}
}

func TestOnlyExactDigestsAreTried(t *testing.T) {
	mac := sign(testSecret, "{}")
	v := custom(t, Scheme{})
	for _, s := range []string{mac[:62], mac + "00", mac[:63], "0x" + mac, mac[:63] + "g", mac[:32] + "\n" + mac[32:], `"` + mac + `"`} {
		refuse(t, v, post("{}", "X-Sig: "+s), ErrUnsigned)
	}
}

func TestBase64HasOneSpelling(t *testing.T) {
	raw := []byte(strings.Repeat("\xfb\xff", 16))
	std, url := encodeDigest(encodings[Base64], raw), encodeDigest(encodings[Base64URL], raw)
	for _, c := range []struct {
		encoding, text string
		ok             bool
	}{
		{Base64, std, true},
		{Base64, strings.TrimRight(std, "="), false},
		{Base64, url + "=", false},
		{Base64, std[:20] + "\n" + std[20:], false},
		{Base64, std[:42] + "9=", false}, // trailing bits that are not zero
		{Base64, std + "=", false},
		{Base64, std[:40] + "\n\n\n=", false},
		{Base64, std[:40] + "AA==", false},
		{Base64URL, url, true},
		{Base64URL, url + "=", true},
		{Base64URL, url + "==", false},
		{Base64URL, std, false},
		{Base64URL, url[:42] + "9", false},
		{Base64URL, url[:42] + "\n", false},
		{Base64URL, url[:41] + "\r\n", false},
		{Base64URL, url[:41] + "A\n", false},
	} {
		dst := make([]byte, 32)
		if got := decodeDigest(encodings[c.encoding], dst, c.text); got != c.ok || got && string(dst) != string(raw) {
			t.Errorf("%s %q: got %v", c.encoding, c.text, got)
		}
	}
}

func TestItemsAreTrimmedAndEmptyOnesIgnored(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	h := strings.ReplaceAll(paymosHeader(testSecret, noon, payBody), ",", " ,\t")
	accept(t, v, post(payBody, "X-Webhook-Signature: ,,  "+h+"\t, ,"))
}

func TestLabelsMatchWholeNames(t *testing.T) {
	for item, want := range map[string]string{"v1=x": "x", "v1,x": "x", "v1/x": "x", "v1==": "=", "v1=": ""} {
		if got, ok := labelled(item, "v1"); !ok || got != want {
			t.Errorf("%q: got %q, %v", item, got, ok)
		}
	}
	for _, item := range []string{"v1", "v11=x", "v10", "V1=x", "xv1=x", "", "v1:x"} {
		if got, ok := labelled(item, "v1"); ok {
			t.Errorf("%q: got %q", item, got)
		}
	}
	if _, ok := labelled("=x", ""); ok {
		t.Error("an empty label matched")
	}
}

func TestPrefixIsRequired(t *testing.T) {
	v := preset(t, "github", testSecret)
	mac := sign(testSecret, "{}")
	for _, s := range []string{mac, "sha1=" + mac, "SHA256=" + mac, "sha256:" + mac} {
		refuse(t, v, post("{}", "X-Hub-Signature-256: "+s), ErrUnsigned)
	}
}

func TestRepeatedLinesAndSeveralHeadersAreAllRead(t *testing.T) {
	v := custom(t, Scheme{Headers: []string{"X-First", "X-Second"}, Prefix: "sha256="})
	right, wrong := "sha256="+sign(testSecret, "{}"), "sha256="+sign("x", "{}")
	accept(t, v, post("{}", "X-Second: "+right))
	accept(t, v, post("{}", "X-First: "+wrong, "X-Second: "+wrong, "X-Second: "+right))
}

func TestAtMostSixteenSignaturesAreTried(t *testing.T) {
	v := custom(t, Scheme{})
	list := func(n int) string {
		return strings.Repeat(sign("wrong", "{}")+",", n) + sign(testSecret, "{}")
	}
	accept(t, v, post("{}", "X-Sig: "+list(15)))
	refuse(t, v, post("{}", "X-Sig: "+list(16)), ErrForged)
	refuse(t, v, post("{}", "X-Sig: "+list(200)), ErrForged)
}

func TestTimestampAfterManySignaturesIsStillFound(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	stamp, mac, _ := strings.Cut(paymosHeader(testSecret, noon, payBody), ",")
	accept(t, v, post(payBody, "X-Webhook-Signature: "+mac+strings.Repeat(",v1="+sign("x", ""), 30)+","+stamp))
}

func TestHugeHeadersCostLittle(t *testing.T) {
	v := preset(t, "paymos", testSecret)
	x := &v.schemes[0].extractor
	many := make([]string, 10000)
	for i := range many {
		many[i] = fmt.Sprintf("v1=%064d", i)
	}
	for name, lines := range map[string][]string{"one line": {strings.Join(many, ",")}, "many lines": many} {
		h := http.Header{"X-Webhook-Signature": lines}
		var found signatures
		n := testing.AllocsPerRun(10, func() {
			found = signatures{}
			x.collect(h, &found)
		})
		if n != 0 || found.items != maxItems || found.n != maxCandidates {
			t.Errorf("%s: %v allocations, %d items, %d candidates", name, n, found.items, found.n)
		}
	}
}

func TestSvixVariantIsChosenByItsSignatureHeader(t *testing.T) {
	v := preset(t, "svix", "whsec_"+encodeDigest(encodings[Base64], []byte("0123456789abcdef")))
	h, err := v.Sign(SignInput{ID: "msg_1", Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: "POST", URI: "/", Header: h}
	h.Set("webhook-id", "msg_other")
	if id := idOf(t, v, r); id.Key != "msg_1" {
		t.Errorf("got %q", id.Key)
	}
	for _, name := range []string{"id", "timestamp", "signature"} {
		h.Set("webhook-"+name, h.Get("svix-"+name))
	}
	h.Del("svix-signature")
	h.Set("svix-id", "msg_other")
	if id := idOf(t, v, r); id.Key != "msg_1" {
		t.Errorf("got %q", id.Key)
	}
	h.Del("webhook-id")
	refuse(t, v, r, ErrMissingID)
}
