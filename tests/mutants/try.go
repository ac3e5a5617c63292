package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// flags of go test. A mutant that hangs is caught too, by the time-out.
var flags = []string{"-tags=nobadger,nomysql,nopgx", "-vet=off", "-count=1", "-failfast", "-timeout=3m", "-ldflags=-s -w"}

// environment is that of go test. The builds are those of the benchmarks, and
// cheaper than with the race detector; only tests that need it say -race.
func environment(tests []string) []string {
	if slices.Contains(tests, "-race") {
		return append(os.Environ(), "GOFLAGS=")
	}
	return append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0")
}

// result is what the tests said to a mutant.
type result struct {
	caught bool
	by     string // the first test that failed
	output string
}

// try runs the tests of m on the product as m breaks it. An error says that
// nothing was shown, because m does not apply or does not compile.
func (m mutant) try(root string) (result, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return result{}, err
	}
	r := result{}
	for _, tests := range m.tests {
		text, failed, err := goTest(root, overlay, tests)
		r.output += text
		if err != nil || failed {
			r.caught, r.by = failed, failure(text)
			return r, err
		}
	}
	return r, nil
}

// goTest runs tests on the product, with the files of overlay if there is one. An
// error says that no test ran.
func goTest(root, overlay string, tests []string) (text string, failed bool, err error) {
	cmd := exec.Command("go", slices.Concat([]string{"test", "-overlay=" + overlay}, flags, tests)...)
	cmd.Dir, cmd.Env = root, environment(tests)
	out, err := cmd.CombinedOutput()
	text = string(out)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return text, false, nil
	case !errors.As(err, &exit):
		return text, false, err
	case notRun.MatchString(text):
		return text, false, fmt.Errorf("no test ran:\n%s", text)
	}
	return text, true, nil
}

// sound reports whether the tests of some mutants pass on the product as it is:
// else their failing would show nothing.
func sound(root string, some []mutant) error {
	done := make(map[string]bool)
	for _, m := range some {
		for _, tests := range m.tests {
			name := strings.Join(tests, " ")
			if done[name] {
				continue
			}
			done[name] = true
			if text, failed, err := goTest(root, "", tests); err != nil || failed {
				return errors.Join(fmt.Errorf("without any mutant, go test %s fails:\n%s", name, text), err)
			}
		}
	}
	return nil
}

// notRun is what go test says when it has not come to testing.
var notRun = regexp.MustCompile(`(?m)\[(build|setup) failed\]$|^(go: |flag provided but)`)

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hung       = regexp.MustCompile(`panic: test timed out`)
	crashed    = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)`)
)

// failure names what failed first.
func failure(text string) string {
	switch {
	case hung.MatchString(text):
		return "the time-out"
	case failedTest.MatchString(text):
		return failedTest.FindStringSubmatch(text)[1]
	case crashed.MatchString(text):
		return crashed.FindStringSubmatch(text)[1]
	}
	return "a failure without a name"
}

// overlay writes the broken files to dir, and the list that go reads.
func (m mutant) overlay(root, dir string) (string, error) {
	files, err := m.apply(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for name, text := range files {
		broken := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(broken, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = broken
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}
