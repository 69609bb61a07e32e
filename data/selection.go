package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
	"tessera/internal/random"
)

// Selection selects the fitted and the validation images of a set. Its fields are keys of every dataset table.
type Selection struct {
	Fit        string     `toml:"fit" oneof:"train test" doc:"split that is fitted: the training images or the test images"`
	Limit      int        `toml:"limit" want:">= 0" doc:"fit only the first images, this many; 0 fits all"`
	Validation Validation `toml:"validation" doc:"fraction of the fitted images that is held out, 0 for none, or \"test\" for the test images; never select a model on the test images"`
	Hide       float64    `toml:"hide" optional:"true" want:"in [0,1)" doc:"fraction of the entries of all images that a model does not see, drawn by the seed: mse_held_out measures how it completes them"`
	Leave      int        `toml:"leave" optional:"true" want:">= 0" doc:"entries of every sample that a model does not see, this many, drawn by the seed: the metrics of ranking measure whether it ranks them first. A sample with no more entries keeps all"`
	Labelled   float64    `toml:"labelled" want:"in (0,1]" doc:"fraction of the fitted images whose labels are known in training; all by default"`

	// Drawn lists the drawn columns of the model; nil for none. It is not a key of the data set.
	Drawn *[]Drawn
}

// Unvalidated is implemented by sources of which no sample is held out by default, such as the rows of a table of words.
type Unvalidated interface{ Unvalidated() bool }

// DefaultSelection returns the selection of an empty table: the training images, a tenth of them held out for validation (none
// for a generated set, and none for a sparse matrix, in which entries are hidden instead).
func DefaultSelection(s Source) Selection {
	if u, ok := s.(Unvalidated); origin(s) == Generated || SparseOf(s) != nil || ok && u.Unvalidated() {
		return Selection{Fit: "train"}
	}
	return Selection{Fit: "train", Validation: Validation{Fraction: 0.1}}
}

// Hides reports whether entries of samples are hidden.
func (s Selection) Hides() bool { return s.Hide > 0 || s.Leave > 0 }

// Need returns the data that fitting and validating read. An evaluation also needs the test images.
func (s Selection) Need() Need {
	return Need{Train: s.Fit != "test", Test: s.Fit == "test" || s.Validation.Test}
}

// Validation is the key validation: "test" for the test images, or the fraction in [0,1) of the fitted images that is held
// out. With 0 there is no validation set.
type Validation struct {
	Test     bool
	Fraction float64
}

func (v *Validation) FromTOML(value any) error {
	var fraction float64
	switch x := value.(type) {
	case string:
		if x != "test" {
			return fmt.Errorf("got %q, want \"test\" or a fraction in [0,1)", x)
		}
		*v = Validation{Test: true}
		return nil
	case int64:
		fraction = float64(x)
	case float64:
		fraction = x
	default:
		return fmt.Errorf("got %s, want \"test\" or a fraction in [0,1)", valueText(value))
	}
	if !(fraction >= 0 && fraction < 1) {
		return fmt.Errorf("got %s, want \"test\" or a fraction in [0,1)", strconv.FormatFloat(fraction, 'g', -1, 64))
	}
	*v = Validation{Fraction: fraction}
	return nil
}

func (v Validation) TOML() any {
	if v.Test {
		return "test"
	}
	return v.Fraction
}

// Splits contains the images of one run.
type Splits struct {
	Fit        *Images
	Validation *Images // validation images; nil if there are none, and then there is no val_mse
	Test       *Images // images for the evaluation: see [Set.Evaluation]; nil if the test images were not loaded

	Scaling *Scaling // scaling of all splits, fitted to Fit; nil if the set has no scale
}

// Split applies a selection: it takes the fitted split, then its first Limit images (all if there are fewer), then holds out
// a fraction. The held-out images depend only on the seed, and both parts keep the order of the set. With fit = "test" and
// validation = "test" the fitted images are also the validation set. Among the remaining fitted images, the fraction Labelled
// of each class (rounded, at least one image), drawn by the seed, keeps its labels; the others get [UnknownLabel]. A fraction
// of 0, the zero value, or 1 keeps all labels. Validation and test images keep their labels. In a set with a scale, the
// statistics are those of the remaining fitted images, and all images are scaled by them. First of all, the fraction Hide of
// the entries of all images is hidden, or Leave entries of each.
func (s *Set) Split(sel Selection, seed uint64) (Splits, error) {
	if err := s.check(); err != nil {
		return Splits{}, err
	}
	if sel.Hide > 0 && sel.Leave > 0 {
		return Splits{}, &Error{Dataset: s.Name, Problem: "hide and leave both hide entries", Hint: "leave out one of these keys"}
	}
	if sel.Hides() && (s.Train.OnDisk() || s.Test.OnDisk()) {
		return Splits{}, &Error{Dataset: s.Name, Problem: "entries of samples that do not fit into memory cannot be hidden", Hint: "leave out hide and leave, or want a larger memory"}
	}
	splits, err := s.hiding(sel, seed).split(sel, seed)
	if err != nil {
		return splits, err
	}
	if err := splits.finish(s.Scale, sel, seed); err != nil {
		return splits, &Error{Dataset: s.Name, Err: err}
	}
	if sel.Labelled == 0 || sel.Labelled == 1 {
		return splits, nil
	}
	if err := splits.hideLabels(sel.Labelled, seed); err != nil {
		return splits, fmt.Errorf("data: %s: %w", s.Name, err)
	}
	return splits, nil
}

// finish scales the samples, and adds the drawn columns of the model.
func (s *Splits) finish(scale Scale, sel Selection, seed uint64) (err error) {
	if len(scale) > 0 && s.Fit.Len() > 0 {
		if s.Scaling, err = scale.Fit(s.Fit); err != nil {
			return err
		}
	}
	for _, images := range []**Images{&s.Fit, &s.Validation, &s.Test} {
		if s.Scaling != nil {
			*images = (*images).Scaled(s.Scaling)
		}
		if *images, err = sel.drawn(*images, seed); err != nil {
			return err
		}
	}
	return nil
}

func (s Selection) drawn(images *Images, seed uint64) (*Images, error) {
	if s.Drawn == nil {
		return images, nil
	}
	return images.WithDrawn(seed, *s.Drawn...)
}

func (s *Set) split(sel Selection, seed uint64) (Splits, error) {
	var splits Splits
	splits.Test, _ = s.Evaluation()
	if (sel.Fit == "test" || sel.Validation.Test) && !s.HasTest {
		return Splits{}, fmt.Errorf("data: %s has no test images to fit or to validate on", s.Name)
	}
	splits.Fit = s.Train
	if sel.Fit == "test" {
		splits.Fit = s.Test
	}
	if splits.Fit == nil || sel.Validation.Test && s.Test == nil {
		return Splits{}, fmt.Errorf("data: %s: the images that the selection names were not loaded", s.Name)
	}
	if sel.Limit > 0 && sel.Limit < splits.Fit.Len() {
		splits.Fit = splits.Fit.First(sel.Limit)
	}
	if sel.Validation.Test {
		splits.Validation = s.Test
		return splits, nil
	}
	if sel.Validation.Fraction == 0 {
		return splits, nil
	}
	return splits, splits.holdOut(sel.Validation.Fraction, seed)
}

// HeldOut returns the number of images, of n, that a fraction holds out for validation. Both parts must have at least one
// image. A fraction that is invalid for n images is also invalid for fewer.
func HeldOut(fraction float64, n int) (int, error) {
	held := int(math.Round(fraction * float64(n)))
	if held == 0 || held == n {
		return 0, part.KeyErrorf("validation",
			"%g holds out %d of %d samples; at least one must be held out and one fitted, or none with validation = 0", fraction, held, n)
	}
	return held, nil
}

// holdOut moves a fraction of the fitted images, drawn without replacement, to the validation.
func (s *Splits) holdOut(fraction float64, seed uint64) error {
	n := s.Fit.Len()
	held, err := HeldOut(fraction, n)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	order := random.Stream(seed, "split", 0).Perm(n)
	validation, fit := order[:held], order[held:]
	slices.Sort(validation)
	slices.Sort(fit)
	s.Fit, s.Validation = s.Fit.Subset(fit), s.Fit.Subset(validation)
	return nil
}

// Split names images of a data set on which a model is measured.
type Split string

// The splits.
const (
	TestSplit       Split = "test"       // the test images
	ValidationSplit Split = "validation" // the images that Selection.Validation holds out of the fitted ones
	TrainSplit      Split = "train"      // the fitted images without held-out ones
	AllSplit        Split = "all"        // all images of a set without a test split, including the fitted ones
)

// SplitNames lists the splits that a user can choose.
func SplitNames() []string {
	return []string{string(TrainSplit), string(ValidationSplit), string(TestSplit)}
}

// Check returns an error for an unknown name of a split. The zero value means [TestSplit].
func (s Split) Check() error {
	if s != "" && !slices.Contains(SplitNames(), string(s)) {
		return fmt.Errorf("unknown split %q, want %s", s, strings.Join(SplitNames(), ", "))
	}
	return nil
}

// NeedOf returns the images that must be loaded to measure a model on a split of a source.
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

// Measured returns the images of a split, according to sel and seed, and the name of the split: [AllSplit] in place of
// [TestSplit] if the set has no test images. It returns an [*Error] for the validation split of a model without held-out
// images.
func (s *Set) Measured(sel Selection, seed uint64, split Split) (*Images, Split, error) {
	if err := split.Check(); err != nil {
		return nil, "", fmt.Errorf("data: %w", err)
	}
	if s.check() == nil {
		s = s.hiding(sel, seed)
	}
	if split == TestSplit || split == "" {
		images, err := s.Evaluation()
		if err == nil {
			images, err = sel.drawn(images, seed)
		}
		if s.HasTest {
			return images, TestSplit, err
		}
		return images, AllSplit, err
	}
	if split == ValidationSplit {
		if err := sel.HoldsOut(); err != nil {
			return nil, "", &Error{Dataset: s.Name, Problem: err.Error(), Hint: "train with dataset.validation = 0.1"}
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

// Validates reports whether there are validation images: held-out ones, or the test images.
func (s Selection) Validates() bool { return s.Validation.Test || s.Validation.Fraction > 0 }

// HoldsOut returns an error with the reason why no fitted images are held out for validation, nil if some are.
func (s Selection) HoldsOut() error {
	switch {
	case s.Validation.Test:
		return errors.New(`no images are held out: validation = "test" validates on the test images`)
	case s.Validation.Fraction == 0:
		return errors.New("no images are held out: validation = 0")
	}
	return nil
}
