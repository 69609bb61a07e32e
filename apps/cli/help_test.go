package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestNoLineOfHelpIsTooLong(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > helpWidth {
				t.Errorf("%s --help: a line of %d characters, want at most %d: %s", cmd.Name(), n, helpWidth, line)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
}

func TestTablesKeepTheirColumnsWhenHelpIsWrapped(t *testing.T) {
	got := wrapped("One sentence\nthat is broken here.\n\n  a    first\n  bcd  words that need two lines\n\nEnd.", 20)
	want := "One sentence that is\nbroken here.\n\n  a    first\n  bcd  words that\n       need two\n       lines\n\nEnd."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
