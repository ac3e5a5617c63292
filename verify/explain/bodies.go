package explain

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// bodyChanges are what happens to bodies between the signature and the file.
// Each returns nil where it does not apply.
var bodyChanges = []struct {
	code, text string
	change     func([]byte) []byte
}{
	{"body-line-end", "The body has a line end at its end that is not signed: it was added on the way, or when it was saved.", func(b []byte) []byte {
		return trimmed(b, bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
	}},
	{"body-line-end", "A line end (LF) at the end of the body is signed and missing.", func(b []byte) []byte { return concat(b, "\n") }},
	{"body-line-end", "A line end (CR LF) at the end of the body is signed and missing.", func(b []byte) []byte { return concat(b, "\r\n") }},
	{"body-line-ends", "The lines of the body were signed with LF and end in CR LF here.", func(b []byte) []byte { return replaced(b, "\r\n", "\n") }},
	{"body-line-ends", "The lines of the body were signed with CR LF and end in LF here.", func(b []byte) []byte {
		return replaced(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), "\n", "\r\n")
	}},
	{"body-white-space", "The body has white space around it that is not signed.", func(b []byte) []byte { return trimmed(b, bytes.TrimSpace(b)) }},
	{"body-byte-order-mark", "The body begins with a byte order mark that is not signed.", func(b []byte) []byte { return trimmed(b, bytes.TrimPrefix(b, []byte("\ufeff"))) }},
	{"body-byte-order-mark", "A byte order mark at the beginning of the body is signed and missing.", func(b []byte) []byte { return concat([]byte("\ufeff"), string(b)) }},
	{"body-decompressed", "The sender signs the body before it is compressed (signed_body decoded).", decompress},
	{"body-chunked", "The saved body still has the sizes of its chunks (Transfer-Encoding: chunked) in it.", unchunk},
	{"body-json-spacing", "The JSON was signed without white space and has some here: something parsed it and wrote it anew.", func(b []byte) []byte { return trimmed(b, compact(b)) }},
	{"body-json-spacing", "The JSON was signed with a space after each comma and colon: something parsed it and wrote it anew.", spaced},
	{"body-json-spacing", "The JSON was signed with line ends and two spaces of indentation: something parsed it and wrote it anew.", func(b []byte) []byte { return indented(b, "  ") }},
	{"body-json-spacing", "The JSON was signed with line ends and four spaces of indentation: something parsed it and wrote it anew.", func(b []byte) []byte { return indented(b, "    ") }},
	{"body-json-spacing", "The JSON was signed with line ends and tabs: something parsed it and wrote it anew.", func(b []byte) []byte { return indented(b, "\t") }},
	{"body-json-escapes", "The JSON was signed with \\u escapes for all that is not ASCII: something parsed it and wrote it anew.", escapeJSON},
	{"body-json-escapes", "The JSON was signed without white space and with \\u escapes: something parsed it and wrote it anew.", func(b []byte) []byte { return escapeJSON(compact(b)) }},
	{"body-json-escapes", "The JSON was signed with a space after each comma and colon and with \\u escapes: something parsed it and wrote it anew.", func(b []byte) []byte { return escapeJSON(spaced(b)) }},
	{"body-json-escapes", "The JSON was signed without \\u escapes: something parsed it and wrote it anew.", unescapeJSON},
	{"body-json-escapes", "The JSON was signed with its slashes escaped (\\/), as PHP writes them: something parsed it and wrote it anew.", func(b []byte) []byte {
		return ifJSON(b, replaced(bytes.ReplaceAll(b, []byte(`\/`), []byte(`/`)), "/", `\/`))
	}},
	{"body-json-escapes", "The JSON was signed with its slashes escaped (\\/) and with \\u escapes, as PHP writes it: something parsed it and wrote it anew.", func(b []byte) []byte {
		return escapeJSON(ifJSON(b, replaced(bytes.ReplaceAll(b, []byte(`\/`), []byte(`/`)), "/", `\/`)))
	}},
	{"body-json-escapes", "The JSON was signed with plain slashes and has them escaped (\\/) here: something parsed it and wrote it anew.", func(b []byte) []byte { return ifJSON(b, replaced(b, `\/`, "/")) }},
	{"body-json-order", "The JSON was signed with its members in alphabetical order: something parsed it and wrote it anew.", sorted},
	{"body-charset", "The body is UTF-8 here and was signed in ISO 8859-1 or Windows-1252, or was converted to UTF-8 once more than it was signed.", toSingleBytes},
	{"body-charset", "The body was signed in UTF-8 and is ISO 8859-1 here.", func(b []byte) []byte { return fromSingleBytes(b, nil) }},
	{"body-charset", "The body was signed in UTF-8 and is Windows-1252 here.", func(b []byte) []byte { return fromSingleBytes(b, windows1252) }},
	{"body-form", "What is signed is the form parameter `payload`, decoded, and not the form.", func(b []byte) []byte { return formValue(b, "payload") }},
	{"body-form", "The body was signed after its percent signs were decoded.", percentDecoded},
	{"body-empty", "An empty body is signed: something consumed the body before it was signed, or the sender does not cover it.", func(b []byte) []byte {
		if len(b) == 0 {
			return nil
		}
		return []byte{}
	}},
}

func bodyRepairs(in Input) (rs []repair) {
	body := in.Request.Body
	add := func(f Finding, changed []byte) {
		if changed != nil && !bytes.Equal(changed, body) {
			rs = append(rs, repair{f, func(a *attempt) { a.request = withBody(a.request, changed) }})
		}
	}
	if in.Wire != nil {
		add(Finding{"body-decoded", "The sender signs the body as it comes, compressed (signed_body wire)."}, in.Wire)
	} else if n := contentLength(in.Request.Header); n >= 0 && n < len(body) {
		add(Finding{"body-length", "Only as many bytes of the body are signed as Content-Length says: the rest was added when it was saved."}, body[:n])
	}
	for _, c := range bodyChanges {
		add(Finding{c.code, c.text}, c.change(body))
	}
	return rs
}

// contentLength is what the header says, or -1.
func contentLength(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Content-Length"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// trimmed returns what is left, or nil if nothing was removed.
func trimmed(before, after []byte) []byte {
	if len(after) == len(before) {
		return nil
	}
	return after
}

func concat(b []byte, s string) []byte { return append(bytes.Clone(b), s...) }

func replaced(b []byte, from, to string) []byte {
	if !bytes.Contains(b, []byte(from)) {
		return nil
	}
	return bytes.ReplaceAll(b, []byte(from), []byte(to))
}

// compressed tells by the first bytes: those of gzip, zstd and zlib, or no text.
func compressed(b []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "\x78\x01", "\x78\x9c", "\x78\xda"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return !utf8.Valid(b[:min(len(b), 64)]) && !utf8.Valid(b)
}

// decompress undoes gzip or deflate, up to a size that no webhook has.
func decompress(b []byte) []byte {
	for _, open := range []func(io.Reader) (io.Reader, error){
		func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		func(r io.Reader) (io.Reader, error) { return flate.NewReader(r), nil },
	} {
		if r, err := open(bytes.NewReader(b)); err == nil {
			if plain, err := io.ReadAll(io.LimitReader(r, 64<<20)); err == nil && len(plain) > 0 {
				return plain
			}
		}
	}
	return nil
}

func unchunk(b []byte) []byte {
	plain, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
	if err != nil || len(plain) == 0 {
		return nil
	}
	return plain
}

func ifJSON(b, changed []byte) []byte {
	if !json.Valid(b) {
		return nil
	}
	return changed
}

func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return nil
	}
	return out.Bytes()
}

func indented(b []byte, by string) []byte {
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(b), "", by) != nil {
		return nil
	}
	return out.Bytes()
}

// spaced writes JSON as Python does.
func spaced(b []byte) []byte {
	var out []byte
	inString := false
	for c := compact(b); len(c) > 0; c = c[1:] {
		out = append(out, c[0])
		switch {
		case inString && c[0] == '\\':
			c = c[1:]
			out = append(out, c[0])
		case c[0] == '"':
			inString = !inString
		case !inString && (c[0] == ',' || c[0] == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// escapeJSON writes what is not ASCII as \u escapes.
func escapeJSON(b []byte) []byte {
	if isASCII(b) || !json.Valid(b) {
		return nil
	}
	var out []byte
	for _, unit := range utf16.Encode([]rune(string(b))) {
		if unit < utf8.RuneSelf {
			out = append(out, byte(unit))
			continue
		}
		out = append(out, `\u`...)
		out = append(out, hex4(unit)...)
	}
	return out
}

func hex4(u uint16) string {
	s := strconv.FormatUint(uint64(u), 16)
	return strings.Repeat("0", 4-len(s)) + s
}

// unescapeJSON writes \u escapes as UTF-8, save those of controls and quotes.
func unescapeJSON(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u`)) || !json.Valid(b) {
		return nil
	}
	var units []uint16
	var out []byte
	flush := func() {
		out = append(out, string(utf16.Decode(units))...)
		units = units[:0]
	}
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && b[i+1] == 'u' {
			n, _ := strconv.ParseUint(string(b[i+2:i+6]), 16, 16)
			if n >= ' ' && n != '"' && n != '\\' {
				units = append(units, uint16(n))
				i += 5
				continue
			}
		}
		flush()
		out = append(out, b[i])
		if b[i] == '\\' {
			i++
			out = append(out, b[i])
		}
	}
	flush()
	return out
}

func sorted(b []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// windows1252 are the characters of the bytes 0x80 to 0x9f, which are controls in
// ISO 8859-1; 0 where there is none.
var windows1252 = []rune{
	'€', 0, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0, 'Ž', 0,
	0, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0, 'ž', 'Ÿ',
}

// toSingleBytes writes text in ISO 8859-1, or in Windows-1252 what is only there.
func toSingleBytes(b []byte) []byte {
	if isASCII(b) || !utf8.Valid(b) {
		return nil
	}
	var out []byte
	for _, r := range string(b) {
		if i := slices.Index(windows1252, r); i >= 0 && r != 0 {
			r = rune(0x80 + i)
		}
		if r > 0xff {
			return nil
		}
		out = append(out, byte(r))
	}
	return out
}

// fromSingleBytes reads each byte as a character: those from 0x80 on by the table,
// where it has one.
func fromSingleBytes(b []byte, table []rune) []byte {
	if isASCII(b) {
		return nil
	}
	var out []byte
	for _, c := range b {
		r := rune(c)
		if i := int(c) - 0x80; i >= 0 && i < len(table) && table[i] != 0 {
			r = table[i]
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func formValue(b []byte, name string) []byte {
	values, err := url.ParseQuery(string(b))
	if err != nil || !values.Has(name) {
		return nil
	}
	return []byte(values.Get(name))
}

func percentDecoded(b []byte) []byte {
	s, err := url.QueryUnescape(string(b))
	if err != nil {
		return nil
	}
	return []byte(s)
}
