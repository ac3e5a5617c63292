package verify

import (
	"errors"
	"strings"
)

// parsePath splits a path to a JSON member at its dots. `\.` is a dot inside a
// name and `\\` a backslash.
func parsePath(path string) ([]string, error) {
	var names []string
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '\\':
			i++
			if i == len(path) || (path[i] != '.' && path[i] != '\\') {
				return nil, errors.New(`in a JSON path a backslash stands only before a dot or a backslash`)
			}
			name.WriteByte(path[i])
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
