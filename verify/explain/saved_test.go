package explain

import (
	"reflect"
	"strings"
	"testing"

	"net/http"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func TestSavedRequestsAreReadByteForByte(t *testing.T) {
	header := http.Header{"X-A": {"1", "2"}, "Content-Type": {"text/plain"}}
	for name, c := range map[string]struct {
		dump string
		want verify.Request
	}{
		"wire":            {"PUT /hook?a=b HTTP/1.1\r\nx-a: 1\r\nX-A:2\r\nContent-Type:\ttext/plain \r\n\r\n{}\r\n", verify.Request{Method: "PUT", URI: "/hook?a=b", Header: header, Body: []byte("{}\r\n")}},
		"LF":              {"PUT /hook?a=b\nx-a: 1\nX-A:2\nContent-Type:\ttext/plain \n\n\n{}", verify.Request{Method: "PUT", URI: "/hook?a=b", Header: header, Body: []byte("\n{}")}},
		"no request line": {"x-a: 1\nX-A:2\nContent-Type:\ttext/plain \n\n", verify.Request{Method: "POST", URI: "/", Header: header, Body: []byte{}}},
		"no body":         {"x-a: 1\nX-A:2\nContent-Type: text/plain", verify.Request{Method: "POST", URI: "/", Header: header}},
	} {
		r, err := ParseRequest([]byte(c.dump))
		if err != nil || !reflect.DeepEqual(*r, c.want) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func TestWhatIsNoRequestIsRefusedUnquoted(t *testing.T) {
	for _, dump := range []string{`{"secret":1}`, "POST / HTTP/1.1\nsecret", "A: b\n secret: x\n\n", ": secret\n"} {
		_, err := ParseRequest([]byte(dump))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", dump, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte("PUT /hook?a=b HTTP/1.1\r\nx-a: 1\r\n\r\n{}\r\n"))
	f.Add([]byte("a:b\n\nbody"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, dump []byte) {
		r, err := ParseRequest(dump)
		if err == nil && !strings.HasSuffix(string(dump), string(r.Body)) {
			t.Error("the body is not the end of the dump")
		}
	})
}
