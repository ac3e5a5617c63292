package caddymodule

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/verify"
)

func sendersCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "senders [<name>]",
		Short: "Lists the presets, or prints one in full",
		Long: `Lists the senders that a route can name, with where their event id is, how long
they try and how long one attempt may take.

With a name it prints what is known of that sender: the same route written out
with a signature block of its own, and what to mind.`,
		Example: `  caddy webhook-dedupe senders
  caddy webhook-dedupe senders stripe`,
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
	}
	cmd.RunE = caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) {
		switch names := cmd.Flags().Args(); {
		case markdown:
			return 0, sendersPage(os.Stdout)
		case len(names) == 1:
			return printSender(os.Stdout, names[0])
		}
		return 0, listSenders(os.Stdout)
	})
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the page of all senders")
	return cmd
}

func listSenders(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSENDER\tEVENT ID\tTRIES FOR\tATTEMPT\tHANDSHAKE")
	for _, s := range allFacts() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Title,
			strings.ReplaceAll(idText(s), "`", ""), windowText(s), attemptText(s), strings.Join(s.Handshakes, ", "))
	}
	return w.Flush()
}

func printSender(out io.Writer, name string) (int, error) {
	if err := verify.CheckSender(name); err != nil {
		return 1, err
	}
	s, _ := verify.SenderNamed(name)
	fmt.Fprintf(out, "# %s\n#\n", s.Title)
	for _, note := range remarks(s) {
		fmt.Fprintln(out, commented(note))
	}
	route, whyNot := customRoute(s)
	if whyNot != "" {
		fmt.Fprintf(out, "#\n%s\n", commented("There is no equivalent in a `signature` block: "+whyNot))
		return 0, nil
	}
	fmt.Fprintf(out, "#\n# The route that `webhook_dedupe %s` stands for:\n%s", s.Name, route)
	return 0, nil
}

// commented wraps a text into the lines of a comment.
func commented(text string) string {
	const width = 78
	var b strings.Builder
	length := 0
	for word := range strings.FieldsSeq("* " + text) {
		switch {
		case length == 0:
			b.WriteString("# ")
			length = 2
		case length+1+len(word) > width:
			b.WriteString("\n#   ")
			length = 4
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String()
}

// allFacts are all presets, in alphabetical order.
func allFacts() (all []verify.Sender) {
	for _, name := range verify.Senders() {
		s, _ := verify.SenderNamed(name)
		all = append(all, s)
	}
	return all
}
