// Command mutants shows that the tests see mistakes: it breaks the product in
// one small way at a time, as the lists in this directory say, and expects the
// tests to fail each time, having passed on the product as it is. A break that goes unnoticed, or that does not apply
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
	"slices"
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
	some := slices.DeleteFunc(all, func(m mutant) bool { return !chosen.MatchString(m.name) })
	if len(some) == 0 {
		return fmt.Errorf("no mutant is called %q", *only)
	}
	if *list {
		for _, m := range some {
			fmt.Fprintln(out, m.name)
		}
		return nil
	}
	if err := sound(root, some); err != nil {
		return err
	}
	unseen, broken := 0, 0
	for _, m := range some {
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
	if unseen+broken > 0 {
		return fmt.Errorf("of %d mutants %d were not caught, and %d show nothing", len(some), unseen, broken)
	}
	fmt.Fprintf(out, "all %d mutants were caught\n", len(some))
	return nil
}
