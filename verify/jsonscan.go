package verify

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// findJSON returns the text of the value at path, a part of doc. The whole
// document must be valid. A repeated member on the path is refused: parsers
// disagree about which one counts, so the receiver might act on the other.
func findJSON(doc []byte, path []string) ([]byte, error) {
	if !json.Valid(doc) { // also bounds the nesting
		if len(bytes.TrimSpace(doc)) == 0 {
			return nil, ErrMissingID.because("the body is empty")
		}
		return nil, ErrBadID.because("the body is not valid JSON")
	}
	return descend(doc[skipSpace(doc, 0):], path)
}

// descend returns the text of the value at path. value is valid and begins with
// its first byte.
func descend(value []byte, path []string) ([]byte, error) {
	for _, name := range path {
		switch value[0] {
		case '{':
		case 'n':
			return nil, ErrMissingID.because("the path ends at a null")
		case '[':
			return nil, ErrBadID.because("the path leads through an array; [*] would take every element")
		default:
			return nil, ErrBadID.because("the path leads through a value that is no object")
		}
		var err error
		if value, err = member(value, name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// member returns the value of the only member of that name. obj is valid and
// begins with its brace. Nothing here recurses: nesting costs no stack.
func member(obj []byte, name string) (value []byte, err error) {
	for i := skipSpace(obj, 1); obj[i] != '}'; {
		keyStart := i + 1
		i = skipString(obj, i)
		matches := keyIs(obj[keyStart:i-1], name)
		i = skipSpace(obj, skipSpace(obj, i)+1) // the colon
		start := i
		i = skipValue(obj, i)
		if matches {
			if value != nil {
				return nil, ErrAmbiguousID.because("the body repeats a member on the path of the id")
			}
			value = obj[start:i]
		}
		if i = skipSpace(obj, i); obj[i] == ',' {
			i = skipSpace(obj, i+1)
		}
	}
	if value == nil {
		return nil, ErrMissingID.because("the body has no such member")
	}
	return value, nil
}

// elements are the values of an array, which is valid and begins with its
// bracket.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := skipSpace(array, 1); array[i] != ']'; {
			start := i
			i = skipValue(array, i)
			if !yield(array[start:i]) {
				return
			}
			if i = skipSpace(array, i); array[i] == ',' {
				i = skipSpace(array, i+1)
			}
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\r', '\t', ',', ':': // only between the values inside
			i++
			continue
		default:
			i = skipScalar(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// skipScalar returns the index after the number, true, false or null at i.
func skipScalar(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\n', '\r', '\t', ',', '}', ']':
			return i
		}
		i++
	}
	return i
}

// keyIs compares a member's name, as written between its quotes.
func keyIs(raw []byte, name string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == name
	}
	s, ok := unescape(raw)
	return ok && s == name
}

// unescape decodes the inside of a valid JSON string and keeps bytes that are no
// UTF-8 as they are. A lone surrogate is refused: it has no text, and parsers
// disagree about what to put in its place.
func unescape(raw []byte) (s string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r := hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
					return "", false
				}
				r = utf16.DecodeRune(r, hex4(raw[i+3:]))
				if r == utf8.RuneError {
					return "", false
				}
				i += 6
			}
			b.WriteRune(r)
		default: // a quote, a backslash or a slash
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// hex4 reads the four hex digits after \u.
func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n)
}
