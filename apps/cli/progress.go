package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/internal/numeral"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/internal/train"
)

// mostLines is the approximate number of progress lines that are printed if live lines are impossible and --log-every is not given.
const mostLines = 60

type progressFlags struct {
	Quiet bool `flag:"quiet" without:"log-every" doc:"show no progress; results, warnings and errors remain"`
	Every int  `flag:"log-every" want:"> 0" doc:"print a progress line every N epochs, or trials of a sweep, also on a terminal" default:"a live line there, elsewhere about 60 lines"`
}

// due reports whether a line is printed when done of all epochs or trials are done.
func (f progressFlags) due(done, all int) bool {
	every := f.Every
	if every == 0 {
		every = max(1, (all-1)/mostLines+1)
	}
	return done%every == 0
}

// progress shows the progress of a training: one live line on a terminal, otherwise some plain lines.
type progress struct {
	progressFlags
	out      io.Writer
	terminal *os.File // the terminal; nil if out is not a terminal
	epoch    train.Metrics
	begun    bool // a live line is on the screen
	run      string
	now      func() time.Time
	at       time.Time // of the last line
	unpaced  bool      // the pace did not fit into a line
	since    time.Time
}

// silence is the longest time without a line within an epoch, where there is no live line.
const silence = time.Minute

func newProgress(out io.Writer, f progressFlags) *progress {
	p := &progress{progressFlags: f, out: out, now: time.Now, at: time.Now(), since: time.Now()}
	if f.Quiet {
		p.out = io.Discard
	} else if screen := file(out); p.Every == 0 && screen != nil && term.IsTerminal(int(screen.Fd())) {
		p.out, p.terminal = screen, screen
	}
	return p
}

func (p *progress) Show(r train.Progress) {
	if p.run == "" {
		p.run = r.Run
		fmt.Fprintln(p.out, "run", spelled(inLine(r.Run)))
	}
	first := p.epoch.Epoch == 0
	if r.EpochDone {
		p.epoch = r.Metrics
	}
	switch {
	case p.terminal != nil:
		fmt.Fprintf(p.out, "\r%s\x1b[K", p.within(p.width(), r))
		p.begun = true
	case r.EpochDone && (first || r.Left == 0 || p.due(r.Epoch, r.Epochs)), // nothing is left after the last epoch
		!r.EpochDone && p.Every == 0 && p.now().Sub(p.at) >= silence:
		fmt.Fprintln(p.out, p.within(widest+1, r))
		p.at = p.now()
	}
}

func (p *progress) End() {
	if p.begun {
		fmt.Fprintln(p.out)
		p.begun = false
	}
}

// Measures says that the trained model is measured, after a training that was so long that the same is to be expected of it.
func (p *progress) Measures() {
	if p.End(); p.now().Sub(p.since) >= silence {
		fmt.Fprintln(p.out, "measuring the trained model")
	}
}

// pieces returns the pieces of a line, in order, with the metrics at the end of the last epoch.
func (p *progress) pieces(r train.Progress) []string {
	valError, sparsity, negative := p.measured()
	return []string{p.head(r), p.terms(r), valError, sparsity, negative, pace(r),
		"  left " + numeral.Duration(r.Left.Round(100*time.Millisecond))}
}

// head returns the position of the run and its loss.
func (p *progress) head(r train.Progress) string {
	var b strings.Builder
	pass := "epoch"
	if r.Iterates {
		pass = "iteration"
	}
	fmt.Fprintf(&b, "%s %*d/%d", pass, digits(r.Epochs), r.Epoch, r.Epochs)
	if p.terminal != nil || !r.EpochDone {
		fmt.Fprintf(&b, " %3d%%", 100*r.Step/max(1, r.Steps))
	}
	fmt.Fprintf(&b, "  loss %s", numeral.Float(r.Loss))
	return b.String()
}

// terms returns the terms of the loss, if there are several.
func (p *progress) terms(r train.Progress) string {
	if len(r.Terms) < 2 {
		return ""
	}
	var b strings.Builder
	for _, t := range r.Terms {
		if t.Missing == "" { // its player had a turn
			fmt.Fprintf(&b, "  %s %s", t.Name, numeral.Float(t.Number))
		}
	}
	for _, p := range r.Players {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(p.Name, train.PlayerKey), ".loss"); ok {
			fmt.Fprintf(&b, "  %s %s", name, numeral.Float(p.Number))
		}
	}
	return b.String()
}

// measured returns the metrics at the end of the last epoch as texts.
func (p *progress) measured() (valError, sparsity, negative string) {
	for _, key := range train.Judging(p.epoch.Measured) {
		value, _ := p.epoch.Measured.Number(key)
		valError += "  " + key + " " + numeral.Float(value)
	}
	if hoyer, ok := p.epoch.Measured.Number("code_hoyer"); ok {
		sparsity = "  code_hoyer " + numeral.Fixed(hoyer, 3) + "  dead " + doc.Text(show.Value(p.epoch.Measured, "dead_units"))
	}
	if _, ok := p.epoch.Measured.Number("negative_weights"); ok {
		negative = "  negative " + doc.Text(show.Value(p.epoch.Measured, "negative_weights"))
	}
	return valError, sparsity, negative
}

// width returns the width of the terminal: a longer line would be wrapped and could not be overwritten.
func (p *progress) width() int {
	if width := pageWidth(p.terminal); width > 1 {
		return width
	}
	return widest
}

// cut truncates a line so that it is narrower than width.
func cut(line string, width int) string {
	line = spelled(line)
	return string([]rune(line)[:min(utf8.RuneCountInString(line), width-1)])
}

// counting returns a function that shows how many of all steps are done: a live line on a terminal, elsewhere a line for each.
func counting(out io.Writer, what string, all int) func(done int) {
	begin, end, to := "", "\n", out
	if screen := file(out); screen != nil && term.IsTerminal(int(screen.Fd())) {
		begin, end, to = "\r", "\x1b[K", screen
	}
	return func(done int) {
		fmt.Fprintf(to, "%stessera: %s %d of %d%s", begin, what, done, all, end)
		if done == all && begin != "" {
			fmt.Fprintln(to)
		}
	}
}

// pace returns the number of samples that are fitted per second, in words. Iterations below a second say nothing of it.
func pace(r train.Progress) string {
	if r.Iterates && r.Seconds < 1 {
		return ""
	}
	unit := "images"
	if r.Vectors {
		unit = "samples"
	}
	return "  " + numeral.Float(r.ImagesPerSecond) + " " + unit + "/s"
}

// within returns the progress as one line that is narrower than width. It omits the least important pieces until the line
// fits, but never the remaining time.
func (p *progress) within(width int, r train.Progress) string {
	pieces := p.pieces(r)
	if p.unpaced && p.terminal == nil { // it is in no line or in all lines that are kept
		pieces[5] = ""
	}
	line := spelled(strings.Join(pieces, ""))
	order := []int{1, 5, 4, 3, 2} // terms, images/s, negative weights, sparsity, error
	if p.terminal == nil {        // lines that are kept: the terms matter more than the speed
		order = []int{5, 4, 1, 3, 2}
	}
	for _, least := range order {
		if utf8.RuneCountInString(line) < width {
			return line
		}
		pieces[least], p.unpaced = "", p.unpaced || least == 5
		line = spelled(strings.Join(pieces, ""))
	}
	return cut(line, width)
}

// sweepProgress shows the progress of a sweep. A terminal shows a line for every finished trial and a live table of running
// trials. Other outputs get a line for some finished trials and for every failed trial.
type sweepProgress struct {
	*progress
	sweep   *sweep.Sweep
	began   time.Time
	running []runningTrial
	work    float64 // work done by this process, in trials
	kept    int
	last    sweep.Event
	live    int // number of lines of the table on the screen

	mu    sync.Mutex
	fleet func() fleet.Fleet // the workers of a sweep on several machines; nil for one machine
}

// runningTrial is a running trial: a line of the table.
type runningTrial struct {
	trial *sweep.Trial
	last  train.Progress
	part  float64 // completed fraction
}

func newSweepProgress(out io.Writer, f progressFlags) *sweepProgress {
	return &sweepProgress{progress: newProgress(out, f)}
}

// Begin prints the number of trials.
func (p *sweepProgress) Begin(s *sweep.Sweep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep, p.began = s, time.Now()
	fmt.Fprintf(p.out, "sweep %s: %s\n", spelled(s.Path), numeral.Of(len(s.Trials), "trial"))
}

// During runs the sweep.
func (p *sweepProgress) During(ctx context.Context, s *sweep.Sweep) (*sweep.Results, error) {
	p.Begin(s)
	defer p.End()
	if p.terminal != nil {
		defer aboveTable(ctx, p.Note)()
	}
	return s.Run(ctx)
}

func (p *sweepProgress) Show(e sweep.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = e
	if e.Kept {
		p.kept++
		return
	}
	p.clear()
	i := slices.IndexFunc(p.running, func(r runningTrial) bool { return r.trial == e.Trial })
	if e.Ended {
		if i >= 0 {
			p.work += 1 - p.running[i].part
			p.running = slices.Delete(p.running, i, i+1)
		}
		if done := e.Done + e.Failed; p.terminal != nil || e.Err != nil || done == e.Total || p.due(done, e.Total) {
			fmt.Fprintln(p.out, spelled(p.ended(e)))
		}
	} else {
		part := float64(e.Progress.Step) / float64(max(1, e.Progress.Steps))
		if i < 0 {
			i = len(p.running)
			p.running = append(p.running, runningTrial{trial: e.Trial, part: part})
		}
		p.work += part - p.running[i].part
		p.running[i].part, p.running[i].last = part, *e.Progress
	}
	p.draw(e)
}

// ended returns the line of a finished trial.
func (p *sweepProgress) ended(e sweep.Event) string {
	line := fmt.Sprintf("[%*d/%d] %s", digits(e.Total), e.Done+e.Failed, e.Total, p.sweep.Describe(e.Trial))
	if e.Err != nil {
		return fmt.Sprintf("%s  failed: %v", line, e.Err)
	}
	shown := 0
	for _, name := range e.Trial.Model.Measures() {
		if v, ok := e.Metrics.Number(name); ok && shown < mostDrawn {
			line += fmt.Sprintf("  %s %s", name, numeral.Float(v))
			shown++
		}
	}
	return line
}

func (p *sweepProgress) draw(e sweep.Event) {
	if p.terminal == nil {
		return
	}
	lines := []string{fmt.Sprintf("%d of %d done, %d failed, left %s", e.Done, e.Total, e.Failed, p.left(e)) + p.workers()}
	for _, r := range p.running {
		lines = append(lines, fmt.Sprintf("  %s  epoch %*d/%d  loss %s%s", p.sweep.Describe(r.trial), digits(r.last.Epochs), r.last.Epoch,
			r.last.Epochs, numeral.Float(r.last.Loss), pace(r.last)))
	}
	for _, line := range lines {
		fmt.Fprintln(p.out, cut(line, p.width()))
	}
	p.live = len(lines)
}

// Note prints a line above the table.
func (p *sweepProgress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.out, spelled(text))
	if p.last.Total > 0 {
		p.draw(p.last)
	}
}

// workers returns a description of the workers of a sweep on several machines.
func (p *sweepProgress) workers() string {
	if p.fleet == nil {
		return ""
	}
	f := p.fleet()
	return fmt.Sprintf(", %s on %s", numeral.Of(f.Workers, "worker"), numeral.Of(f.Cores, "core"))
}

// left returns the estimated time until the last trial ends.
func (p *sweepProgress) left(e sweep.Event) string {
	rest := float64(e.Total - e.Done - e.Failed)
	for _, r := range p.running {
		rest -= r.part
	}
	if p.work <= 0 {
		return "?"
	}
	return numeral.Seconds(time.Since(p.began).Seconds() * rest / p.work)
}

// clear removes the table from the screen, so that lines can follow that remain on the screen. The first of these lines is the
// number of trials that were already done.
func (p *sweepProgress) clear() {
	if p.live > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", p.live)
		p.live = 0
	}
	if p.kept > 0 {
		fmt.Fprintln(p.out, numeral.Of(p.kept, "trial")+map[bool]string{true: " was", false: " were"}[p.kept == 1]+" already done")
		p.kept = 0
	}
}

// End removes the live table and prints the final lines.
func (p *sweepProgress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
