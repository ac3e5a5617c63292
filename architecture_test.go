package architecture_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/webhook-dedupe/caddy-webhook-dedupe"
	caddy  = "github.com/caddyserver/"
)

// dependencies are the packages that a package of ours is built from, itself
// left out; ours without the module's name in front.
func dependencies(t *testing.T, pkg string) (ours, others []string) {
	t.Helper()
	const format = `{{if not .Standard}}{{.ImportPath}}{{end}}`
	out, err := exec.Command("go", "list", "-tags", "nobadger,nomysql,nopgx", "-deps", "-f", format, "./"+pkg).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for _, path := range strings.Fields(string(out)) {
		name, isOurs := strings.CutPrefix(path, module+"/")
		switch {
		case isOurs && name == pkg:
		case isOurs:
			ours = append(ours, name)
		default:
			others = append(others, path)
		}
	}
	return ours, others
}

func TestCoreStandsOnTheStandardLibraryAlone(t *testing.T) {
	for _, pkg := range []string{"verify", "dedupe"} {
		if ours, others := dependencies(t, pkg); len(ours)+len(others) > 0 {
			t.Errorf("%s is built from %q and %q", pkg, ours, others)
		}
	}
}

func TestStoresKnowNothingOfOursButTheContract(t *testing.T) {
	for _, pkg := range []string{"dedupe/memstore", "dedupe/filestore", "dedupe/redisstore", "dedupe/storetest"} {
		ours, others := dependencies(t, pkg)
		if !slices.Equal(ours, []string{"dedupe"}) {
			t.Errorf("%s is built from %q", pkg, ours)
		}
		if pkg != "dedupe/redisstore" && len(others) > 0 {
			t.Errorf("%s is built from %q", pkg, others)
		}
		if i := slices.IndexFunc(others, isCaddy); i >= 0 {
			t.Errorf("%s is built from %s", pkg, others[i])
		}
	}
}

func TestWhatIsBelowVerifyKnowsNothingElseOfOurs(t *testing.T) {
	entries, err := os.ReadDir("verify")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "testdata" {
			continue
		}
		seen++
		ours, others := dependencies(t, "verify/"+e.Name())
		if len(ours) > 1 || len(ours) == 1 && ours[0] != "verify" {
			t.Errorf("verify/%s is built from %q", e.Name(), ours)
		}
		if i := slices.IndexFunc(others, isCaddy); i >= 0 {
			t.Errorf("verify/%s is built from %s", e.Name(), others[i])
		}
	}
	if seen == 0 {
		t.Error("no package below verify was seen")
	}
}

func TestCaddyModuleJoinsTheParts(t *testing.T) {
	ours, others := dependencies(t, "caddymodule")
	want := []string{"dedupe", "dedupe/filestore", "dedupe/memstore", "dedupe/redisstore", "verify"}
	ours = slices.DeleteFunc(ours, func(pkg string) bool { return strings.HasPrefix(pkg, "verify/") })
	slices.Sort(ours)
	if !slices.Equal(ours, want) {
		t.Errorf("caddymodule is built from %q", ours)
	}
	if !slices.ContainsFunc(others, isCaddy) {
		t.Error("caddymodule does not import Caddy: does this test see anything?")
	}
}

func isCaddy(path string) bool { return strings.HasPrefix(path, caddy) }

// TestOnlyTheModuleAndTheEndToEndTestsImportCaddy reads the files, so that it
// sees tests and files of other platforms too.
func TestOnlyTheModuleAndTheEndToEndTestsImportCaddy(t *testing.T) {
	seen := make(map[string]int)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			if err == nil && entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		seen[top]++
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			adapter := imported == module+"/caddymodule" || isCaddy(imported)
			if adapter && top != "caddymodule" && top != "tests" {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"verify", "dedupe", "caddymodule", "tests"} {
		if seen[top] == 0 {
			t.Errorf("no file below %s was seen", top)
		}
	}
}
