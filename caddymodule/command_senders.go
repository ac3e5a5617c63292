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

With a name it prints what is known of that sender: what to mind, and the same
route written out with a block of its own. A sender with several schemes has a
block for each, all but the first commented out.`,
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
	routes := customRoutes(s)
	if len(routes) == 0 {
		fmt.Fprintf(out, "#\n%s\n", commented("There is no equivalent in a `signature` block: no payload can say what is signed."))
		return 0, nil
	}
	if s.UnsignedIDHeader != "" {
		fmt.Fprintln(out, commented("Only the preset compares the signed id with the header "+s.UnsignedIDHeader+"."))
	}
	fmt.Fprintf(out, "#\n# The route that `webhook_dedupe %s` stands for%s:\n%s", s.Name, after(" ", routes[0].when), routes[0].route)
	for _, r := range routes[1:] { // commented out: the output is a route as a whole
		fmt.Fprintf(out, "#\n# The same%s:\n%s", after(" ", r.when), disabled(r.route))
	}
	return 0, nil
}

// after puts something in front of a text that is not empty.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// disabled makes comments of the lines of a route.
func disabled(route string) string {
	return "# " + strings.ReplaceAll(strings.TrimSuffix(route, "\n"), "\n", "\n# ") + "\n"
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
