package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"tessera/train"
)

// mostLines is about how many progress lines are printed where no live line is possible and no --log-every is given.
const mostLines = 60

// progressFlags say how much progress is shown.
type progressFlags struct {
	quiet bool
	every int // 0: about [mostLines] lines
}

// add adds the flags; what is counted are "epochs" or "trials".
func (f *progressFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "show no progress; results, warnings and errors remain")
	cmd.Flags().IntVar(&f.every, "log-every", 0, fmt.Sprintf("print a progress line every N %s, also on a terminal (default a live line there, elsewhere about %d lines)", what, mostLines))
	cmd.MarkFlagsMutuallyExclusive("quiet", "log-every")
}

// check refuses a number of which there is no every.
func (f *progressFlags) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("log-every") && f.every < 1 {
		return usagef("--log-every: got %d, want > 0", f.every)
	}
	return nil
}

// due reports whether a line is printed after done of all.
func (f progressFlags) due(done, all int) bool {
	every := f.every
	if every == 0 {
		every = max(1, (all-1)/mostLines+1)
	}
	return done%every == 0
}

// progress shows the progress of a training: one live line on a terminal, some plain lines elsewhere.
type progress struct {
	progressFlags
	out      io.Writer
	terminal *os.File // nil if out is not a terminal
	epoch    train.Metrics
	begun    bool // a live line is on the screen
	run      string
}

func newProgress(out io.Writer, f progressFlags) *progress {
	p := &progress{progressFlags: f, out: out}
	if f.quiet {
		p.out = io.Discard
	} else if screen := file(out); p.every == 0 && screen != nil && term.IsTerminal(int(screen.Fd())) {
		p.out, p.terminal = screen, screen
	}
	return p
}

// Show shows one report.
func (p *progress) Show(r train.Progress) {
	if p.run == "" {
		p.run = r.Run
		fmt.Fprintln(p.out, "run", spelled(r.Run))
	}
	first := p.epoch.Epoch == 0
	if r.EpochDone {
		p.epoch = r.Metrics
	}
	switch {
	case p.terminal != nil:
		fmt.Fprintf(p.out, "\r%s\x1b[K", p.fitted(r))
		p.begun = true
	case r.EpochDone && (first || r.Left == 0 || p.due(r.Epoch, r.Epochs)): // nothing is left after the last epoch
		fmt.Fprintln(p.out, p.line(r))
	}
}

// End leaves the live line.
func (p *progress) End() {
	if p.begun {
		fmt.Fprintln(p.out)
		p.begun = false
	}
}

// line is the text of one report. It shows the metrics at the end of the last epoch.
func (p *progress) line(r train.Progress) string {
	return spelled(strings.Join(p.pieces(r), ""))
}

// pieces are the pieces of a line, in order.
func (p *progress) pieces(r train.Progress) []string {
	valError, sparsity, negative := p.measured()
	return []string{p.head(r), p.terms(r), valError, sparsity, negative, pace(r),
		"  left " + duration(r.Left)}
}

// head is the position of the run and its loss.
func (p *progress) head(r train.Progress) string {
	var b strings.Builder
	pass := "epoch"
	if r.Iterates {
		pass = "iteration"
	}
	fmt.Fprintf(&b, "%s %*d/%d", pass, digits(r.Epochs), r.Epoch, r.Epochs)
	if p.terminal != nil {
		fmt.Fprintf(&b, " %3.0f%%", 100*float64(r.Step)/float64(max(1, r.Steps)))
	}
	fmt.Fprintf(&b, "  loss %s", number(r.Loss))
	return b.String()
}

// terms are the terms of the loss, if there are several.
func (p *progress) terms(r train.Progress) string {
	if len(r.Terms) < 2 {
		return ""
	}
	var b strings.Builder
	for _, t := range r.Terms {
		fmt.Fprintf(&b, "  %s %s", t.Name, number(t.Number))
	}
	return b.String()
}

// measured shows the metrics at the end of the last epoch.
func (p *progress) measured() (valError, sparsity, negative string) {
	if mse, ok := p.epoch.Measured.Number("val_mse"); ok {
		valError = "  val_mse " + number(mse)
	}
	if accuracy, ok := p.epoch.Measured.Number("val_accuracy"); ok {
		valError += "  val_accuracy " + number(accuracy)
	}
	if hoyer, ok := p.epoch.Measured.Number("code_hoyer"); ok {
		sparsity = fmt.Sprintf("  code_hoyer %.3f  dead %s", hoyer, valueText(p.epoch.Measured, "dead_units"))
	}
	if _, ok := p.epoch.Measured.Number("negative_weights"); ok {
		negative = "  negative " + valueText(p.epoch.Measured, "negative_weights")
	}
	return valError, sparsity, negative
}

// fitted shortens a line to the terminal's width, because a wrapped line could not be overwritten. It removes the terms of
// the loss first and never the remaining time.
func (p *progress) fitted(r train.Progress) string {
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || width < 2 {
		return p.line(r)
	}
	return p.within(width, r)
}

// fit truncates a line to the width of the terminal.
func (p *progress) fit(line string) string {
	line = spelled(line)
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || width < 2 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:width-1])
}

// pace is how many samples are fitted per second.
func pace(r train.Progress) string {
	unit := "images"
	if r.Vectors {
		unit = "samples"
	}
	return fmt.Sprintf("  %.0f %s/s", r.ImagesPerSecond, unit)
}

// within removes the least important pieces until the line fits.
func (p *progress) within(width int, r train.Progress) string {
	pieces := p.pieces(r)
	line := spelled(strings.Join(pieces, ""))
	for _, least := range []int{1, 5, 4, 3, 2} { // terms, images/s, negative weights, sparsity, error
		if utf8.RuneCountInString(line) < width {
			return line
		}
		pieces[least] = ""
		line = spelled(strings.Join(pieces, ""))
	}
	return string([]rune(line)[:min(utf8.RuneCountInString(line), width-1)])
}

func digits(n int) int { return len(fmt.Sprint(n)) }

// number prints a value with four significant digits.
func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// longest is the time from which a duration is not printed exactly.
const longest = 100 * 365 * 24 * time.Hour

// duration prints a time to whole seconds, tenths below ten.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	if d >= longest {
		return "over 100 years"
	}
	return d.Round(time.Second).String()
}

// counted is a number with a noun: "1 model", "2 models".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
