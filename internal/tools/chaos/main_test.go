package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The test is a small version of `make chaos` without a wrong clock, because building another standard library takes a minute.
func TestASmallSweepSurvivesKillsAndCutConnections(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("builds the command and kills processes")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	o := options{trials: 6, epochs: 500, kills: 4, least: 1, workers: 2, seed: 1, pause: 300 * time.Millisecond, lease: time.Second, wrong: "none", dir: t.TempDir()}
	report, err := run(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + report)
	if want := "6 of 6, 0 failed"; !strings.Contains(report, want) {
		t.Errorf("the report lacks %q", want)
	}
}
