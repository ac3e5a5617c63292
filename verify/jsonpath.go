package verify

import (
	"errors"
	"strings"
)

// jsonPath is the way to a JSON value. With each it leads to one value in every
// element of an array.
type jsonPath struct {
	names []string // to the value, or to the array
	each  bool
	rest  []string // from an element on; none: the element itself
}

// eachElement stands in a path for every element of an array.
const eachElement = "[*]"

var errBracket = errors.New(`a JSON path has [*] at most once, after a name or at the beginning; a bracket inside a name is written \[`)

// parsePath parses member names with dots between them. `$` for the whole
// document may stand in front. `[*]` after a name or the `$` stands for every
// element of an array. `\.`, `\[`, `\$` and `\\` are these characters in a name.
func parsePath(path string) (p jsonPath, err error) {
	switch {
	case path == "$":
		return p, errors.New("a JSON path names a member; $ is the whole document")
	case strings.HasPrefix(path, "$."):
		path = path[2:]
	case strings.HasPrefix(path, "$["):
		path = path[1:]
	}
	i := indexUnescaped(path, eachElement)
	if i < 0 {
		p.names, err = parseNames(path)
		return p, err
	}
	p.each = true
	if i > 0 {
		if p.names, err = parseNames(path[:i]); err != nil {
			return p, err
		}
	}
	if path = path[i+len(eachElement):]; path == "" {
		return p, nil
	}
	if path[0] != '.' {
		return p, errBracket
	}
	p.rest, err = parseNames(path[1:])
	return p, err
}

// parseSinglePath parses a path that leads to one value.
func parseSinglePath(path string) ([]string, error) {
	p, err := parsePath(path)
	if err == nil && p.each {
		return nil, errors.New("[*] has no place in a JSON path to a single value")
	}
	return p.names, err
}

// parseNames splits a path at its dots.
func parseNames(path string) ([]string, error) {
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '\\':
			i++
			if i == len(path) || strings.IndexByte(`.[$\`, path[i]) < 0 {
				return nil, errors.New(`in a JSON path a backslash stands only before a dot, a bracket, a dollar sign or a backslash`)
			}
			name.WriteByte(path[i])
		case '[':
			return nil, errBracket
		case '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(c)
		}
	}
	names = append(names, name.String())
	for _, n := range names {
		if n == "" {
			return nil, errors.New("a JSON path must not have an empty name between its dots")
		}
	}
	return names, nil
}

// indexUnescaped returns where s is in path, but not behind a backslash, or -1.
func indexUnescaped(path, s string) int {
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' {
			i++
		} else if strings.HasPrefix(path[i:], s) {
			return i
		}
	}
	return -1
}
