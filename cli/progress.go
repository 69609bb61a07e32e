package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"tessera/train"
)

// progress shows the progress of a training: one live line on a terminal, one plain line per epoch elsewhere.
type progress struct {
	out      io.Writer
	terminal *os.File // nil where out is none
	epoch    train.Metrics
	begun    bool // a live line is on the screen
	run      string
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = f
	}
	return p
}

// Show shows one report.
func (p *progress) Show(r train.Progress) {
	if p.run == "" {
		p.run = r.Run
		fmt.Fprintln(p.out, "run", r.Run)
	}
	if r.EpochDone {
		p.epoch = r.Metrics
	}
	switch {
	case p.terminal != nil:
		fmt.Fprintf(p.out, "\r%s\x1b[K", p.fitted(r))
		p.begun = true
	case r.EpochDone:
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

// line is the text of one report. What is measured at the end of an epoch is shown as the last epoch left it.
func (p *progress) line(r train.Progress) string {
	return strings.Join(p.pieces(r), "")
}

// pieces are those of a line, in order.
func (p *progress) pieces(r train.Progress) []string {
	valError, sparsity, negative := p.measured()
	return []string{p.head(r), p.terms(r), valError, sparsity, negative, fmt.Sprintf("  %.0f images/s", r.ImagesPerSecond),
		"  left " + duration(r.Left)}
}

// head is where the run is, and its loss.
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

// terms are those of the loss, where there are several.
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

// measured is what the end of the last epoch showed.
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

// fitted is the most of a line that the terminal's width takes, the time left always: a wrapped line could not be
// written over. The terms of the loss go first.
func (p *progress) fitted(r train.Progress) string {
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || width < 2 {
		return p.line(r)
	}
	return p.within(width, r)
}

// fit cuts a line to the width of the terminal.
func (p *progress) fit(line string) string {
	width, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil || width < 2 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:width-1])
}

// within leaves the least important pieces out until the line fits.
func (p *progress) within(width int, r train.Progress) string {
	pieces := p.pieces(r)
	line := strings.Join(pieces, "")
	for _, least := range []int{1, 5, 4, 3, 2} { // terms, images/s, negative weights, sparsity, error
		if utf8.RuneCountInString(line) < width {
			return line
		}
		pieces[least] = ""
		line = strings.Join(pieces, "")
	}
	return string([]rune(line)[:min(utf8.RuneCountInString(line), width-1)])
}

func digits(n int) int { return len(fmt.Sprint(n)) }

// number prints a value with four significant digits.
func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// duration prints a time to whole seconds, tenths below ten.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// counted is a number of things: "1 model", "2 models".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
