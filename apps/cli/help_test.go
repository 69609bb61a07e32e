package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestNoLineOfHelpIsLongerThanTheTerminal(t *testing.T) {
	var check func(cmd *cobra.Command, width int)
	check = func(cmd *cobra.Command, width int) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		fatal.If(t, cmd.Help())
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width && !strings.HasPrefix(line, "  tessera ") && !strings.HasPrefix(line, "  curl ") {
				t.Errorf("%s --help: a line of %d characters, want at most %d: %s", cmd.Name(), n, width, line)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub, width)
		}
	}
	for _, width := range []int{80, widest} {
		check(newRoot(width), width)
	}
}

func TestHelpIsAsWideAsColumnsSays(t *testing.T) {
	for columns, want := range map[string]int{"": widest, "80": 80, "300": widest, "1": narrowest, "wide": widest} {
		t.Setenv("COLUMNS", columns)
		if got := lineWidth(&bytes.Buffer{}); got != want {
			t.Errorf("COLUMNS=%s: got %d, want %d", columns, got, want)
		}
	}
}

// Narrow terminals have no room for the last column of some tables.
func TestAllHelpIsWrappedToTheNarrowestWidth(t *testing.T) {
	for _, width := range []int{1, narrowest, 50} {
		if newRoot(width) == nil {
			t.Error("no command")
		}
	}
	expect.Equal(t, wrapped("  a long entry    first and second", 20), "  a long entry   \n  first and second")
}

func TestTablesKeepTheirColumnsWhenHelpIsWrapped(t *testing.T) {
	got := wrapped("One sentence\nthat is broken here.\n\n  a    first\n  bcd  words that need two lines\n\nEnd.", 20)
	want := "One sentence that is\nbroken here.\n\n  a    first\n  bcd  words that\n       need two\n       lines\n\nEnd."
	expect.Equal(t, got, want)
}
