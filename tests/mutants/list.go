package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is a deliberate mistake in the product.
type mutant struct {
	name  string
	tests [][]string // arguments of go test, tried in turn until one fails
	edits []edit
}

// edit replaces one piece of a file.
type edit struct {
	file     string
	old, new []string // lines; how they are indented does not matter
}

// load reads the lists. A list is a text of blocks:
//
//	= what the mistake is
//	test ./dedupe/memstore -run Contract
//	file dedupe/memstore/memstore.go
//	- e.token == h.Token
//	+ true
//
// The lines with a minus must be found once in the file, the first and the last
// of them also as parts of lines; those with a plus take their place. A block may
// have several edits, of several files. Without a test line the tests of the
// files' packages are run (see testsOf). What stands before the first block is a
// comment.
func load(root string) ([]mutant, error) {
	names, err := filepath.Glob(filepath.Join(root, "tests", "mutants", "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	seen := make(map[string]bool)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		some, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, m := range some {
			if seen[m.name] {
				return nil, fmt.Errorf("%s: there are two of %q", name, m.name)
			}
			seen[m.name] = true
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, errors.New("there are no lists")
	}
	return all, nil
}

func parse(text []byte) ([]mutant, error) {
	var all []mutant
	file := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		word, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if word == "=" {
			all = append(all, mutant{name: rest})
			file = ""
			continue
		}
		if word == "" || len(all) == 0 {
			continue
		}
		m := &all[len(all)-1]
		switch {
		case word == "test":
			m.tests = append(m.tests, strings.Fields(rest))
		case word == "file":
			file = rest
			m.edits = append(m.edits, edit{file: file})
		case word == "-" && file != "":
			last := &m.edits[len(m.edits)-1]
			if len(last.new) > 0 { // another place in the same file
				m.edits = append(m.edits, edit{file: file})
				last = &m.edits[len(m.edits)-1]
			}
			last.old = append(last.old, rest)
		case word == "+" && file != "" && len(m.edits[len(m.edits)-1].old) > 0:
			last := &m.edits[len(m.edits)-1]
			last.new = append(last.new, rest)
		default:
			return nil, fmt.Errorf("line %d: %q", n, lines.Text())
		}
	}
	for i := range all {
		if len(all[i].tests) == 0 {
			all[i].tests = testsOf(all[i].edits)
		}
	}
	return all, lines.Err()
}

// testsOf are the tests that shall notice a mistake in these files: those of the
// package, and for the state machine the simulation.
func testsOf(edits []edit) [][]string {
	simulation := []string{"./dedupe/simulation", "-run", "Keep|Concurrent|Follow"}
	var tests [][]string
	for _, e := range edits {
		switch dir := filepath.Dir(e.file); dir {
		case "dedupe", "dedupe/memstore":
			tests = append(tests, []string{"./" + dir}, simulation)
		case "dedupe/redisstore": // not those that wait for elections
			tests = append(tests, []string{"./" + dir, "-skip", "Sentinel|Cluster|MinReplicas|Failover"}, simulation)
		default:
			tests = append(tests, []string{"./" + dir})
		}
	}
	return tests
}

// moduleRoot is where go.mod is.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// apply returns the files of m as it breaks them, by name.
func (m mutant) apply(root string) (map[string][]byte, error) {
	if len(m.edits) == 0 {
		return nil, errors.New("it edits nothing")
	}
	files := make(map[string][]byte)
	for _, e := range m.edits {
		if files[e.file] == nil {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			files[e.file] = text
		}
		text, err := e.apply(files[e.file])
		if err != nil {
			return nil, err
		}
		files[e.file] = text
	}
	return files, nil
}

func (e edit) apply(text []byte) ([]byte, error) {
	var pattern []string
	for _, line := range e.old {
		pattern = append(pattern, regexp.QuoteMeta(line))
	}
	places := regexp.MustCompile(strings.Join(pattern, `\n[ \t]*`)).FindAllIndex(text, -1)
	if len(e.old) == 0 || len(places) != 1 {
		return nil, fmt.Errorf("%s: found %d times, want once: %q", e.file, len(places), e.old)
	}
	var out []byte
	out = append(out, text[:places[0][0]]...)
	out = append(out, strings.Join(e.new, "\n")...)
	return append(out, text[places[0][1]:]...), nil
}
