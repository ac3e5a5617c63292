package verify

import (
	"errors"
	"testing"
)

func TestJSONValueIsReadForLogs(t *testing.T) {
	const doc = `{"a":{"s":"caf\u00e9","n":1.50,"b":true,"o":{"x": [1, 2]},"z":null}}`
	for path, want := range map[string]string{
		"a.s": "café", "a.n": "1.50", "a.b": "true", "a.o": `{"x": [1, 2]}`, "a.o.x": "[1, 2]", "a.z": "null",
	} {
		if got, err := JSONValue([]byte(doc), path); err != nil || got != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
}

func TestJSONValueThatIsNotThereIsAnError(t *testing.T) {
	for _, c := range []struct {
		doc, path string
		want      *Error
	}{
		{`{}`, "a", ErrMissingID}, {`{"a":1,"a":2}`, "a", ErrAmbiguousID}, {`{"a":`, "a", ErrBadID}, {`[]`, "a", ErrBadID},
	} {
		if got, err := JSONValue([]byte(c.doc), c.path); !errors.Is(err, c.want) {
			t.Errorf("%s at %s: got %q, %v", c.path, c.doc, got, err)
		}
	}
	if got, err := JSONValue([]byte(`{"":1}`), ""); err == nil {
		t.Errorf("an empty path found %q", got)
	}
	if got, err := JSONValue([]byte(`[{"a":1}]`), "$[*].a"); err == nil || Reason(err) != "" {
		t.Errorf("a path to several values found %q, %v", got, err)
	}
}
