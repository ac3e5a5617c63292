// Command mutants shows that the tests see mistakes: it breaks the product in
// one small way at a time, as the lists in this directory say, and expects the
// tests to fail each time. A break that goes unnoticed, or that does not apply
// any more, makes it fail.
//
//	go run ./tests/mutants                     # all
//	go run ./tests/mutants -list
//	go run ./tests/mutants -run 'redis.*token' # those whose name matches
//
// The files themselves are left alone: the compiler is told to read others in
// their place.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("run", "", "the names to run, as a regular expression")
	list := flags.Bool("list", false, "only list the names")
	verbose := flags.Bool("v", false, "show what the tests say")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := load(root)
	if err != nil {
		return err
	}
	unseen, broken, count := 0, 0, 0
	for _, m := range all {
		if !chosen.MatchString(m.name) {
			continue
		}
		count++
		if *list {
			fmt.Fprintln(out, m.name)
			continue
		}
		begin := time.Now()
		r, err := m.try(root)
		verdict := "caught by " + r.by
		switch {
		case err != nil:
			verdict = "BROKEN: " + err.Error()
			broken++
		case !r.caught:
			verdict = "NOT CAUGHT"
			unseen++
		}
		fmt.Fprintf(out, "%-70s %s (%v)\n", m.name, verdict, time.Since(begin).Round(time.Second))
		if *verbose {
			fmt.Fprintln(out, r.output)
		}
	}
	switch {
	case count == 0:
		return fmt.Errorf("no mutant is called %q", *only)
	case unseen+broken > 0:
		return fmt.Errorf("of %d mutants %d were not caught, and %d show nothing", count, unseen, broken)
	case !*list:
		fmt.Fprintf(out, "all %d mutants were caught\n", count)
	}
	return nil
}
