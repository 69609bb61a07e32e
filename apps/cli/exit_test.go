package cli

import (
	"fmt"
	"math"
	"testing"

	"tessera/metrics"
	"tessera/sweep/fleet"
	"tessera/train/folder"
)

func TestMetricsThatAreNotFiniteHaveTheCodeOfADivergedTraining(t *testing.T) {
	err := workError{fmt.Errorf("run: %w", &metrics.NotFinite{Metric: "mse", Number: math.NaN()})}
	if code := exitCode(err); code != exitDiverged {
		t.Errorf("exit code %d, want %d", code, exitDiverged)
	}
}

func TestErrorsOfSweepsOnSeveralMachinesHaveTheirCodes(t *testing.T) {
	for err, want := range map[error]int{
		fmt.Errorf("h:1: %w: wrong token", fleet.ErrRefused):  exitUsage,
		fmt.Errorf("in use; %w", fleet.ErrAddress):            exitUsage,
		fmt.Errorf("h:1: %w", fleet.ErrLost):                  exitLost,
		fmt.Errorf("%w at h:1", fleet.ErrNoServer):            exitLost,
		&folder.WriteError{Path: "queue", Err: fleet.ErrLost}: exitWrite,
	} {
		if got := exitCode(workError{err}); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
