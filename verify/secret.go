package verify

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Secret is one of the keys that a sender may sign with.
type Secret struct {
	// Value is the secret as the sender shows it, placeholders resolved.
	Value string
	// Until is when the secret stops to count. Zero: never.
	Until time.Time
}

// String hides the value, so that no log can print it by accident.
func (Secret) String() string { return "(secret)" }

// GoString hides the value from %#v as well.
func (Secret) GoString() string { return "(secret)" }

// decodeSecret turns a secret into the bytes of its key. Format is Text, Base64
// (where a leading whsec_ is dropped) or Hex. What looks like a slip of copy and
// paste is refused: a wrong key would only show as signatures that never match.
// A key that really has such an edge can be given in another format.
func decodeSecret(value, format string) ([]byte, error) {
	trimmed := strings.TrimSpace(value)
	switch {
	case trimmed == "":
		return nil, errors.New("is empty")
	case trimmed != value:
		return nil, errors.New("has white space around it; remove it, or give the key with secret_format hex")
	case strings.HasPrefix(value, "v1,whsec_"):
		return nil, errors.New("begins with the label `v1,`; leave the label out and begin with whsec_")
	case quoted(value):
		return nil, errors.New("is wrapped in quotes; remove them, or give the key with secret_format hex")
	}
	var key []byte
	var err error
	switch format {
	case Text:
		key = []byte(value)
	case Base64:
		bare := strings.TrimPrefix(value, "whsec_")
		if strings.ContainsAny(bare, "\r\n") { // which the decoder would skip
			return nil, errors.New("is not base64")
		}
		key, err = base64.StdEncoding.Strict().DecodeString(bare)
	case Hex:
		key, err = hex.DecodeString(value)
	default:
		return nil, fmt.Errorf("has the unknown format %q; there are text, base64 and hex", format)
	}
	if err != nil { // not wrapped: it may quote a byte of the secret
		return nil, fmt.Errorf("is not %s", format)
	}
	if len(key) == 0 {
		return nil, errors.New("is empty")
	}
	return key, nil
}

func quoted(s string) bool {
	first, last := s[0], s[len(s)-1]
	return len(s) > 1 && first == last && (first == '"' || first == '\'' || first == '`')
}
