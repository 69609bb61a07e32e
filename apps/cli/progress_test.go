package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tessera/internal/expect"
	"tessera/internal/train"
	"tessera/metrics"
)

func TestTheLiveLineKeepsShareAndTimeLeftAtAnyWidth(t *testing.T) {
	p := &progress{terminal: os.Stderr}
	p.epoch = train.Metrics{Epoch: 3, Measured: metrics.Values{{Name: "val_mse", Number: math.Pi / 100}, {Name: "code_hoyer", Number: 0.5123}, {Name: "dead_units", Number: 12}}}
	r := train.Progress{Epochs: 500, Steps: 1000, Left: 83 * time.Second}
	r.Epoch, r.Step, r.Loss, r.ImagesPerSecond = 4, 250, 0.0312345, 54321
	r.Terms = metrics.Values{{Name: "mse", Number: 0.03}, {Name: "kl", Number: 0.0012345}, {Name: "asymmetric_decay", Number: 1e-5}}
	b := &bench{T: t}
	for _, width := range []int{50, 80, 100, 120, 200} {
		line := p.within(width, r)
		b.contains("the live line", line, " 25%", "left 83 s")
		if n := utf8.RuneCountInString(line); n >= width {
			t.Errorf("%d characters on %d columns: %s", n, width, line)
		}
	}
	b.contains("80 columns", p.within(80, r), "val_mse 0.03142")
	b.contains("100 columns", p.within(100, r), "code_hoyer 0.512")
}

// Elsewhere an epoch of several minutes has a line each minute, and the measuring behind it one.
func TestElsewhereLongEpochsHaveALineEachMinute(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, progressFlags{})
	clock := time.Unix(0, 0)
	p.now, p.at, p.since = func() time.Time { return clock }, clock, clock
	for step := range 301 {
		r := train.Progress{Run: "runs/x", Epochs: 1, Steps: 300, EpochDone: step == 300}
		if r.Epoch, r.Step = 1, step; !r.EpochDone {
			r.Left = time.Duration(300-step) * time.Second
		}
		p.Show(r)
		clock = clock.Add(time.Second)
	}
	p.Measures()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 7 {
		t.Fatalf("got %d lines, want the run, four within the epoch, its end and the measuring:\n%s", len(lines), &out)
	}
	expect.Contains(t, lines[1], " 20%")
	expect.Contains(t, lines[6], "measuring")
}

// If the output is not a terminal, about sixty lines are printed: the first epoch, the last one, and some between.
func TestElsewhereProgressIsAboutSixtyLines(t *testing.T) {
	for _, c := range []struct {
		flags            progressFlags
		from, to, epochs int
		lines            int // number of lines, including "run"
	}{
		{progressFlags{}, 1, 600, 600, 62}, {progressFlags{}, 1, 60, 60, 61}, {progressFlags{}, 1, 61, 61, 33}, {progressFlags{}, 1, 1, 1, 2},
		{progressFlags{}, 301, 600, 600, 32}, {progressFlags{}, 1, 7, 100_000, 3}, // stopped early
		{progressFlags{Every: 1}, 1, 600, 600, 601}, {progressFlags{Every: 250}, 1, 600, 600, 5}, {progressFlags{Quiet: true}, 1, 600, 600, 0},
	} {
		var out bytes.Buffer
		p := newProgress(&out, c.flags)
		for epoch := c.from; epoch <= c.to; epoch++ {
			r := train.Progress{Run: "runs/x", Epochs: c.epochs, Steps: c.epochs, EpochDone: true, Left: time.Duration(c.to-epoch) * time.Second}
			r.Epoch, r.Step = epoch, epoch
			p.Show(r)
		}
		p.End()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		expect.Equal(t, len(lines), c.lines, c, out.String())
		if len(lines) > 0 && !strings.HasPrefix(strings.ReplaceAll(lines[len(lines)-1], " ", ""), fmt.Sprintf("epoch%d/", c.to)) {
			t.Errorf("%+v ends with %q", c, lines[len(lines)-1])
		}
	}
}

func TestQuietAndLogEvery(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	epochs := func(r result) int { return strings.Count(r.stderr, "epoch ") }
	if r := b.must(0, "train", "small", "--quiet", "--out", "run"); r.stderr != "" || !strings.Contains(r.stdout, "mse") {
		t.Errorf("--quiet:\n%s\n%s", r.stdout, r.stderr)
	}
	if r := b.must(0, "resume", "run", "--epochs", "24", "--log-every", "5"); epochs(r) != 4 { // 13, 15, 20, 24
		t.Errorf("--log-every 5:\n%s", r.stderr)
	}
	if r := b.must(0, "sweep", "targets", "--epochs", "1", "--log-every", "6"); strings.Count(r.stderr, "/12] ") != 2 {
		t.Errorf("a sweep with --log-every 6:\n%s", r.stderr)
	}
	if r := b.must(0, "sweep", "targets", "--epochs", "1", "--quiet", "--out", "silent"); r.stderr != "" || !strings.Contains(r.stdout, "silent") {
		t.Errorf("a sweep with --quiet:\n%s\n%s", r.stdout, r.stderr)
	}
	for _, args := range []string{"train small --log-every 0", "resume run --log-every -1", "sweep targets --log-every 0", "train small --quiet --log-every 3"} {
		b.contains(args, b.must(exitUsage, strings.Fields(args)...).stderr, "log-every")
	}
}

// An invalid number of epochs is a usage error (exit code 2) for train and for resume.
func TestEpochsThatCannotBeAreAnErrorOfUsage(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallModels+"\n[model.factors]\nkind = \"nmf\"\ncomponents = 3\niterations = 2\n")
	b.must(0, "train", "small", "--epochs", "3")
	b.must(0, "train", "factors")
	b.contains("too few", b.must(exitUsage, "resume", "runs/small", "--epochs", "2").stderr, "--epochs: runs/small: got 2, but 3 are complete")
	b.contains("a baseline", b.must(exitUsage, "resume", "runs/factors", "--epochs", "2").stderr, "--epochs: runs/factors: a baseline (nmf) has no epochs")
	b.contains("a baseline", b.must(exitUsage, "train", "factors", "--epochs", "2").stderr, "--epochs: factors is a baseline")
}

func TestShortIterationsShowNoSpeed(t *testing.T) {
	for _, c := range []struct {
		r    train.Progress
		want string
	}{
		{train.Progress{Iterates: true, Metrics: train.Metrics{Seconds: 0.1, ImagesPerSecond: 2e7}}, ""},
		{train.Progress{Iterates: true, Metrics: train.Metrics{Seconds: 2, ImagesPerSecond: 30}}, "  30 images/s"},
		{train.Progress{Metrics: train.Metrics{Seconds: 0.1, ImagesPerSecond: 30}}, "  30 images/s"},
	} {
		expect.Equal(t, pace(c.r), c.want)
	}
}
