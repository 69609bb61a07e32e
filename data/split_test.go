package data

import (
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestASplitIsWhatTheModelIsMeasuredOn(t *testing.T) {
	held := Selection{Fit: "train", Validation: Validation{Fraction: 0.3}, Labelled: 0.5}
	for _, c := range []struct {
		name  string
		test  int
		sel   Selection
		split Split
		want  Split
		n     int
	}{
		{"test images", 10, held, TestSplit, TestSplit, 10},
		{"the zero value", 10, held, "", TestSplit, 10},
		{"no test images", 0, held, TestSplit, AllSplit, 30},
		{"held out", 10, held, ValidationSplit, ValidationSplit, 9},
		{"fitted", 10, held, TrainSplit, TrainSplit, 21},
		{"fitted, validated on the test images", 10, Selection{Fit: "train", Validation: Validation{Test: true}}, TrainSplit, TrainSplit, 30},
		{"fitted test images", 10, Selection{Fit: "test"}, TrainSplit, TrainSplit, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := testSet(t, 30, c.test)
			images, split, err := set.Measured(c.sel, 7, c.split)
			fatal.If(t, err)
			expect.Equal(t, images.Len(), c.n)
			expect.Equal(t, split, c.want)
			if slices.Contains(images.Labels(), UnknownLabel) {
				t.Error("measured images lost their labels")
			}
		})
	}
}

// The measured validation images are those that the training held out, image by image.
func TestTheMeasuredValidationImagesAreThoseHeldOut(t *testing.T) {
	sel, set := Selection{Fit: "train", Validation: Validation{Fraction: 0.3}}, testSet(t, 30, 10)
	splits, err := set.Split(sel, 7)
	fatal.If(t, err)
	for split, want := range map[Split]*Images{ValidationSplit: splits.Validation, TrainSplit: splits.Fit} {
		got, _, err := set.Measured(sel, 7, split)
		fatal.If(t, err)
		expect.Slice(t, got.Float32(), want.Float32(), split)
	}
}

func TestAModelThatHoldsNothingOutHasNoValidationSplit(t *testing.T) {
	for want, sel := range map[string]Selection{
		`validation = "test"`: {Fit: "train", Validation: Validation{Test: true}},
		"validation = 0":      {Fit: "train"},
	} {
		_, _, err := testSet(t, 30, 10).Measured(sel, 1, ValidationSplit)
		expect.As[*Error](t, err, want)
		expect.Error(t, err, "dataset.validation = 0.1")
	}
	if _, _, err := testSet(t, 30, 10).Measured(Selection{}, 1, "tset"); err == nil || !strings.Contains(err.Error(), `unknown split "tset"`) {
		t.Errorf("an unknown split: %v", err)
	}
}
