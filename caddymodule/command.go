package caddymodule

import (
	"errors"
	"io"
	"os"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "webhook-dedupe",
		Short: "Tools for the webhook_dedupe handler",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(sendCommand(), sendersCommand(), explainCommand())
		},
	})
}

// argument is a value of the command line: itself, or what a file (@file) or
// standard input (@-) holds.
func argument(value string) ([]byte, error) {
	name, isFile := strings.CutPrefix(value, "@")
	switch {
	case !isFile:
		return []byte(value), nil
	case name == "":
		return nil, errors.New("@ needs the name of a file, or - for standard input")
	case name == "-":
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}
