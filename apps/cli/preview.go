package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"tessera"
	"tessera/show/terminal"
)

// previewFlag chooses how atoms are shown in the terminal.
type previewFlag struct{ how string }

// automatic detects what the terminal can show.
const automatic = "auto"

func (f *previewFlag) add(cmd *cobra.Command) {
	choices := slices.Concat([]string{automatic}, terminal.Protocols())
	cmd.Flags().StringVar(&f.how, "preview", automatic, "how atoms are shown in the terminal: "+strings.Join(choices, ", ")+"; never where the output is not a terminal")
	_ = cmd.RegisterFlagCompletionFunc("preview", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses unknown names.
func (f *previewFlag) check() error {
	if choices := slices.Concat([]string{automatic}, terminal.Protocols()); !slices.Contains(choices, f.how) {
		return usagef("--preview: got %q, want one of %s", f.how, strings.Join(choices, ", "))
	}
	return nil
}

// show draws the first atoms of a run if the output is a terminal.
func (f *previewFlag) show(cmd *cobra.Command, r *tessera.Run) error {
	screen := screenOf(cmd)
	if screen == nil || f.how == string(terminal.None) {
		return nil
	}
	p := terminal.Protocol(f.how)
	if f.how == automatic {
		p = terminal.Detect(os.Getenv)
	}
	columns, _, err := term.GetSize(int(screen.Fd()))
	if err != nil || p == terminal.None {
		return nil
	}
	if columns == 0 { // a terminal that does not know its size
		columns = 80
	}
	a := r.Atoms()
	var shown strings.Builder
	n, err := terminal.Atoms(&shown, a, p, columns)
	if errors.Is(err, terminal.ErrNoPicture) || err == nil && n == 0 {
		return nil
	} else if err != nil {
		return err
	}
	caption := fmt.Sprintf("the first %d of %d atoms", n, a.Count)
	if n == a.Count {
		caption = fmt.Sprintf("the %d atoms", n)
	}
	_, err = fmt.Fprintf(screen, "\n%s\n%s", caption, shown.String())
	return err
}

// screenOf is the terminal that results are printed to, nil where they go elsewhere.
func screenOf(cmd *cobra.Command) *os.File { return terminalOf(cmd.OutOrStdout()) }

// terminalOf is the terminal that an output goes to, or nil.
func terminalOf(out io.Writer) *os.File {
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	if f := file(out); f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}
