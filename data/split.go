package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Split names images of a data set that a model is measured on.
type Split string

// The splits.
const (
	TestSplit       Split = "test"       // the test images
	ValidationSplit Split = "validation" // the images that Selection.Validation holds out of the fitted ones
	TrainSplit      Split = "train"      // the fitted images
	AllSplit        Split = "all"        // every image of a set that has no test split, the fitted ones among them
)

// SplitNames lists the splits that can be asked for.
func SplitNames() []string {
	return []string{string(TrainSplit), string(ValidationSplit), string(TestSplit)}
}

// Check refuses a name that no split has. The zero value stands for [TestSplit].
func (s Split) Check() error {
	if s != "" && !slices.Contains(SplitNames(), string(s)) {
		return fmt.Errorf("unknown split %q, want %s", s, strings.Join(SplitNames(), ", "))
	}
	return nil
}

// NeedOf returns which images must be loaded to measure a model on a split of a source.
func NeedOf(source Source, sel Selection, split Split) Need {
	tests := HasTest(source)
	switch {
	case split == TestSplit || split == "":
		return Need{Train: !tests, Test: tests}
	case sel.Fit == "test":
		return Need{Test: true}
	}
	return Need{Train: true}
}

// Measured returns the images of a split, as sel and seed choose them, and which split they are: [AllSplit] in place of
// [TestSplit] where the set has no test images. A model that holds no images out has no validation split: a [*Error].
func (s *Set) Measured(sel Selection, seed uint64, split Split) (*Images, Split, error) {
	if err := split.Check(); err != nil {
		return nil, "", fmt.Errorf("data: %w", err)
	}
	if split == TestSplit || split == "" {
		images, err := s.Evaluation()
		if s.HasTest {
			return images, TestSplit, err
		}
		return images, AllSplit, err
	}
	if split == ValidationSplit {
		if err := sel.HoldsOut(); err != nil {
			return nil, "", &Error{Dataset: s.Name, Problem: err.Error(), Hint: "train with --set dataset.validation=0.1"}
		}
	} else if sel.Validation.Test {
		sel.Validation = Validation{} // every fitted image: the test images need not be there
	}
	sel.Labelled = 0 // what is measured keeps its labels
	splits, err := s.Split(sel, seed)
	if err != nil {
		return nil, "", err
	}
	if split == ValidationSplit {
		return splits.Validation, split, nil
	}
	return splits.Fit, split, nil
}

// HoldsOut returns an error that says why no fitted images are held out for validation, nil where some are.
func (s Selection) HoldsOut() error {
	switch {
	case s.Validation.Test:
		return errors.New(`no images are held out: validation = "test" validates on the test images`)
	case s.Validation.Fraction == 0:
		return errors.New("no images are held out: validation = 0")
	}
	return nil
}
