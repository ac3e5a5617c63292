package verify

// JSONValue returns the value at a path of a JSON document, for logs: the text
// of a string, or any other value as it is written. Paths are those of
// [IDSource], without `[*]`; the errors are the same too.
func JSONValue(doc []byte, path string) (string, error) {
	names, err := parseSinglePath(path)
	if err != nil {
		return "", err
	}
	value, err := findJSON(doc, names)
	if err != nil {
		return "", err
	}
	if value[0] != '"' {
		return string(value), nil
	}
	return jsonText(value[1 : len(value)-1])
}
