package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"tessera/sweep"
	"tessera/sweep/fleet"
	"tessera/train"
)

// sweepProgress shows the progress of a sweep. On a terminal: a line for every finished trial and a live table of running
// trials. Elsewhere: a line for some finished trials and for every failed one.
type sweepProgress struct {
	*progress
	sweep   *sweep.Sweep
	began   time.Time
	running []runningTrial
	work    float64 // work done by this process, in trials
	kept    int
	last    sweep.Event
	live    int // lines of the table on the screen

	mu    sync.Mutex
	fleet func() fleet.Fleet // the workers of a sweep on several machines; nil for one machine
}

// runningTrial is a line of the table.
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
	fmt.Fprintf(p.out, "sweep %s: %s\n", spelled(s.Path), counted(len(s.Trials), "trial"))
}

// During runs the sweep.
func (p *sweepProgress) During(ctx context.Context, s *sweep.Sweep) (*sweep.Results, error) {
	p.Begin(s)
	defer p.End()
	if p.terminal != nil {
		defer beside(ctx, p.Note)()
	}
	return s.Run(ctx)
}

// Show shows one event.
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

// ended is the line of a finished trial.
func (p *sweepProgress) ended(e sweep.Event) string {
	line := fmt.Sprintf("[%*d/%d] %s", digits(e.Total), e.Done+e.Failed, e.Total, p.sweep.Describe(e.Trial))
	if e.Err != nil {
		return fmt.Sprintf("%s  failed: %v", line, e.Err)
	}
	for _, m := range []struct{ name, head, format string }{
		{"mse", "mse", "%.4g"}, {"hoyer", "hoyer", "%.3f"}, {"max_approx", "max_approx", "%.4g"}, {"accuracy", "accuracy", "%.4g"}, {"dead_units", "dead", "%.0f"},
	} {
		if v, ok := e.Metrics.Number(m.name); ok {
			line += fmt.Sprintf("  %s "+m.format, m.head, v)
		}
	}
	return line
}

// draw draws the table of running trials.
func (p *sweepProgress) draw(e sweep.Event) {
	if p.terminal == nil {
		return
	}
	lines := []string{fmt.Sprintf("%d of %d done, %d failed, left %s", e.Done, e.Total, e.Failed, p.left(e)) + p.workers()}
	for _, r := range p.running {
		lines = append(lines, fmt.Sprintf("  %s  epoch %*d/%d  loss %s%s", p.sweep.Describe(r.trial), digits(r.last.Epochs), r.last.Epoch,
			r.last.Epochs, number(r.last.Loss), pace(r.last)))
	}
	for _, line := range lines {
		fmt.Fprintln(p.out, p.fit(line))
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

// workers describes the workers of a sweep on several machines.
func (p *sweepProgress) workers() string {
	if p.fleet == nil {
		return ""
	}
	f := p.fleet()
	return fmt.Sprintf(", %s on %s", counted(f.Workers, "worker"), counted(f.Cores, "core"))
}

// left is the estimated time until the last trial ends.
func (p *sweepProgress) left(e sweep.Event) string {
	rest := float64(e.Total - e.Done - e.Failed)
	for _, r := range p.running {
		rest -= r.part
	}
	if p.work <= 0 {
		return "?"
	}
	return duration(time.Duration(min(float64(time.Since(p.began))*rest/p.work, float64(longest))))
}

// clear removes the table from the screen: lines that remain follow. The first of them is the number of trials that were done.
func (p *sweepProgress) clear() {
	if p.live > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", p.live)
		p.live = 0
	}
	if p.kept > 0 {
		fmt.Fprintln(p.out, keptBefore(p.kept))
		p.kept = 0
	}
}

// End removes the live table and prints the final lines.
func (p *sweepProgress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// keptBefore describes the number of trials that were already done.
func keptBefore(n int) string {
	if n == 1 {
		return "1 trial was already done"
	}
	return fmt.Sprintf("%d trials were already done", n)
}
