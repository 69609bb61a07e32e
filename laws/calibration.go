package laws

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/lists"
	"tessera/internal/vectors"
	"tessera/posthoc"
)

// Calibration contains the laws of calibrations, tested on the logits of classifiers of two and of three classes that are overconfident.
var Calibration = inTrials(eachCalibrationTrial, []law[calibrationTrial]{
	{"calibrates an overconfident classifier", calibrationTrial.calibrates},
	{"gives finite logits", calibrationTrial.finite},
	{"treats every sample by itself", calibrationTrial.rowwise},
	{"gives the same numbers for the same samples, which it leaves as they are", calibrationTrial.repeatable},
	{"is the same when it is read again", calibrationTrial.stored},
	{"accepts what it has fitted", calibrationTrial.accepted},
})

// calibrationTrial is a calibration with the samples to which it is fitted.
type calibrationTrial struct {
	fresh   func() posthoc.Method
	classes int
	logits  []float32
	labels  []int
}

func (t calibrationTrial) String() string { return fmt.Sprintf("%d classes", t.classes) }

// eachCalibrationTrial draws classes with the softmax of logits as their probabilities. The trials get four times these logits.
func eachCalibrationTrial(fresh func() posthoc.Method, try func(t calibrationTrial)) error {
	for _, classes := range []int{2, 3} {
		r := rand.New(rand.NewPCG(1, uint64(classes)))
		t := calibrationTrial{fresh: fresh, classes: classes}
		p := make([]float64, classes)
		for range 600 {
			row := lists.Of(classes, func(int) float32 { return float32(r.NormFloat64()) })
			vectors.Softmax(p, row)
			class, u := 0, r.Float64()
			for u -= p[0]; u > 0 && class < classes-1; u -= p[class] {
				class++
			}
			for _, z := range row {
				t.logits = append(t.logits, 4*z)
			}
			t.labels = append(t.labels, class)
		}
		try(t)
	}
	return nil
}

func (t calibrationTrial) fitted() (posthoc.Method, error) {
	m := t.fresh()
	return m, m.Fit(t.logits, t.labels, t.classes)
}

// applied returns the logits after m.
func (t calibrationTrial) applied(m posthoc.Method) []float32 {
	logits := slices.Clone(t.logits)
	m.Apply(logits, t.classes)
	return logits
}

// crossEntropy returns the mean cross entropy of the labels.
func (t calibrationTrial) crossEntropy(logits []float32) (sum float64) {
	p := make([]float64, t.classes)
	for i, class := range t.labels {
		vectors.Softmax(p, logits[i*t.classes:(i+1)*t.classes])
		sum -= math.Log(p[class]) / float64(len(t.labels))
	}
	return sum
}

func (t calibrationTrial) calibrates() error {
	m, err := t.fitted()
	if err != nil {
		return err
	}
	if before, after := t.crossEntropy(t.logits), t.crossEntropy(t.applied(m)); !(after < before) {
		return fmt.Errorf("the cross entropy of the fitted samples is %.4g, want less than the %.4g before", after, before)
	}
	return nil
}

func (t calibrationTrial) finite() error {
	m, err := t.fitted()
	if err != nil {
		return err
	}
	for i, z := range t.applied(m) {
		if notFinite(z) {
			return fmt.Errorf("logit %d is %v", i, z)
		}
	}
	return nil
}

func (t calibrationTrial) rowwise() error {
	m, err := t.fitted()
	if err != nil {
		return err
	}
	rows := slices.Clone(t.logits)
	for row := range slices.Chunk(rows, t.classes) {
		m.Apply(row, t.classes)
	}
	return differ("logits of single samples", rows, t.applied(m))
}

func (t calibrationTrial) repeatable() error {
	before, labels := slices.Clone(t.logits), slices.Clone(t.labels)
	first, err := t.fitted()
	if err != nil {
		return err
	}
	if err := differ("logits after the fit", t.logits, before); err != nil {
		return err
	}
	if !slices.Equal(labels, t.labels) {
		return errors.New("the fit changes the classes")
	}
	second, err := t.fitted()
	if err != nil {
		return err
	}
	return differ("logits of a second fit", t.applied(second), t.applied(first))
}

func (t calibrationTrial) stored() error {
	m, err := t.fitted()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	read := t.fresh()
	if err := json.Unmarshal(text, read); err != nil {
		return err
	}
	return errors.Join(read.Check(t.classes), differ("logits of the calibration that was read from JSON", t.applied(read), t.applied(m)))
}

func (t calibrationTrial) accepted() error {
	m, err := t.fitted()
	if err != nil {
		return err
	}
	return m.Check(t.classes)
}
