package laws_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"tessera/laws"
	"tessera/posthoc"
)

// wrongCalibration divides logits by 4, and does what a test specifies.
type wrongCalibration struct {
	Of    float64
	fit   func(logits []float32)
	apply func(c *wrongCalibration, logits []float32, classes int)
	check error
	kept  float64 // is not stored
}

func (c *wrongCalibration) Fit(logits []float32, _ []int, _ int) error {
	c.Of, c.kept = 4, 1
	if c.fit != nil {
		c.fit(logits)
	}
	return nil
}

func (c *wrongCalibration) Apply(logits []float32, classes int) {
	for i := range logits {
		logits[i] /= float32(c.Of)
	}
	if c.apply != nil {
		c.apply(c, logits, classes)
	}
}

func (c *wrongCalibration) Check(int) error { return c.check }

// For every law of calibrations there is an incorrect part that breaks it, and a correct one breaks none.
func TestTheLawsOfCalibrationsAreBroken(t *testing.T) {
	nan := float32(math.NaN())
	for law, c := range map[string]wrongCalibration{
		"calibrates an overconfident classifier": {apply: func(_ *wrongCalibration, logits []float32, _ int) {
			for i := range logits {
				logits[i] *= 100
			}
		}},
		"gives finite logits": {apply: func(_ *wrongCalibration, logits []float32, _ int) { logits[0] = nan }},
		"treats every sample by itself": {apply: func(_ *wrongCalibration, logits []float32, classes int) {
			if len(logits) > classes {
				logits[0]++
			}
		}},
		"gives the same numbers for the same samples, which it leaves as they are": {fit: func(logits []float32) { logits[0]++ }},
		"is the same when it is read again":                                        {apply: func(c *wrongCalibration, logits []float32, _ int) { logits[0] += float32(c.kept) }},
		"accepts what it has fitted":                                               {check: errors.New("no")},
	} {
		fresh := func() posthoc.Method { other := c; return &other }
		if broken := laws.Broken(laws.Calibration, fresh); !slices.Contains(broken, law) {
			t.Errorf("%q is not broken, but %q", law, broken)
		}
	}
	if broken := laws.Broken(laws.Calibration, func() posthoc.Method { return &wrongCalibration{} }); len(broken) > 0 {
		t.Errorf("a correct calibration breaks %q", broken)
	}
}

func TestEveryCalibrationObeysItsLaws(t *testing.T) {
	for _, e := range posthoc.Registry.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Calibration, e.New) })
	}
}
