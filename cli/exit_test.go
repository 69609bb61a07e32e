package cli

import (
	"fmt"
	"math"
	"testing"

	"tessera/metrics"
)

func TestMetricsThatAreNotFiniteHaveTheCodeOfADivergedTraining(t *testing.T) {
	err := workError{fmt.Errorf("run: %w", &metrics.NotFinite{Metric: "mse", Number: math.NaN()})}
	if code := exitCode(err); code != exitDiverged {
		t.Errorf("exit code %d, want %d", code, exitDiverged)
	}
}
