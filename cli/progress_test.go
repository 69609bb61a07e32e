package cli

import (
	"math"
	"os"
	"testing"
	"time"
	"unicode/utf8"

	"tessera/metrics"
	"tessera/train"
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
		b.contains("the live line", line, " 25%", "left 1m23s")
		if n := utf8.RuneCountInString(line); n >= width {
			t.Errorf("%d characters on %d columns: %s", n, width, line)
		}
	}
	b.contains("80 columns", p.within(80, r), "val_mse 0.03142")
	b.contains("100 columns", p.within(100, r), "code_hoyer 0.512")
}
