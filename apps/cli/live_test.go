package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/sweep"
	"tessera/internal/train"
)

// drawn returns the contents of a terminal after it has printed a text with the control characters of the live table.
func drawn(text string) string {
	var lines []string
	for _, part := range strings.SplitAfter(text, "\n") {
		for up := strings.Index(part, "\x1b["); up >= 0; up = strings.Index(part, "\x1b[") {
			n := int(part[up+2] - '0') // tables of this test have fewer than ten lines
			lines = lines[:len(lines)-n]
			part = strings.TrimPrefix(part[up+4:], "\r\x1b[J")
		}
		lines = append(lines, part)
	}
	return strings.Join(lines, "")
}

func TestLinesDuringALiveTableAreAboveIt(t *testing.T) {
	var out bytes.Buffer
	p := newSweepProgress(io.Discard, progressFlags{})
	p.out, p.terminal = &out, os.Stderr // never written to
	trial := &sweep.Trial{Trial: config.Trial{Model: &config.Model{Name: "small"}}}
	s := &sweep.Sweep{Path: "sweeps/s", Trials: []*sweep.Trial{trial, {}, {}}}
	p.Begin(s)
	for range 2 {
		p.Show(sweep.Event{Ended: true, Kept: true, Done: 2, Total: 3})
	}
	p.Note("listening")
	p.Show(sweep.Event{Trial: trial, Progress: &train.Progress{Steps: 4}, Done: 2, Total: 3})

	var stderr bytes.Buffer
	table := &liveTable{out: &stderr}
	end := aboveTable(context.WithValue(context.Background(), liveKey{}, table), p.Note)
	table.say("interrupted")
	p.Show(sweep.Event{Trial: trial, Progress: &train.Progress{Steps: 4, Vectors: true}, Done: 2, Total: 3})
	end()
	table.say("after the table")
	expect.Equal(t, stderr.String(), "\nafter the table\n", "beside the table")
	want := "sweep sweeps/s: 3 trials\n2 trials were already done\nlistening\ninterrupted\n2 of 3 done, 0 failed, left ?\n  small seed=0  epoch 0/0  loss 0  0 samples/s\n"
	expect.Equal(t, drawn(out.String()), want, "the screen shows")
	p.End()
	if got := drawn(out.String()); strings.Contains(got, "left") {
		t.Errorf("the table is left:\n%s", got)
	}
}
