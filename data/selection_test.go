package data

import (
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func testSet(t *testing.T, train, test int) *Set {
	s := &Set{Name: "numbers", Shape: []int{1, 1}, Train: counting(t, train, 1, 1)}
	if test > 0 {
		s.HasTest, s.Test = true, counting(t, test, 1, 1)
	}
	return s
}

func TestSplitTakesWhatTheSelectionSays(t *testing.T) {
	for _, c := range []struct {
		name                  string
		test                  int
		sel                   Selection
		fit, validation, eval int // numbers of images; -1 for none
	}{
		{"the study's convention", 10, Selection{Fit: "train", Validation: Validation{Test: true}}, 30, 10, 10},
		{"nothing validates", 10, Selection{Fit: "train"}, 30, -1, 10},
		{"no test split", 0, Selection{Fit: "train"}, 30, -1, 30},
		{"held out", 0, Selection{Fit: "train", Validation: Validation{Fraction: 0.1}}, 27, 3, 30},
		{"limited, then held out", 10, Selection{Fit: "train", Limit: 20, Validation: Validation{Fraction: 0.25}}, 15, 5, 10},
		{"the test images themselves", 10, Selection{Fit: "test", Validation: Validation{Test: true}}, 10, 10, 10},
		{"a limit above the count", 10, Selection{Fit: "test", Limit: 99}, 10, -1, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			splits, err := testSet(t, 30, c.test).Split(c.sel, 1)
			fatal.If(t, err)
			for _, got := range []struct {
				what   string
				images *Images
				want   int
			}{{"fit", splits.Fit, c.fit}, {"validation", splits.Validation, c.validation}, {"test", splits.Test, c.eval}} {
				n := -1
				if got.images != nil {
					n = got.images.Len()
				}
				expect.Equal(t, n, got.want, got.what, n, "images")
			}
		})
	}
}

func TestHeldOutImagesArePartitionedByTheSeedAlone(t *testing.T) {
	sel := Selection{Fit: "train", Validation: Validation{Fraction: 0.3}}
	labels := func(seed uint64) (fit, validation []int) {
		splits, err := testSet(t, 100, 0).Split(sel, seed)
		fatal.If(t, err)
		return splits.Fit.Labels(), splits.Validation.Labels()
	}
	fit, validation := labels(1)
	again, _ := labels(1)
	other, _ := labels(2)
	expect.Slice(t, fit, again, "equal seeds gave different splits")
	if slices.Equal(fit, other) {
		t.Error("different seeds gave the same split")
	}
	if !slices.IsSorted(fit) || !slices.IsSorted(validation) {
		t.Error("a split lost the order of the set")
	}
	all := slices.Sorted(slices.Values(append(slices.Clone(fit), validation...)))
	for i, label := range all {
		if label != 10*i {
			t.Fatalf("the splits do not hold every image once: %v", all)
		}
	}
}

func TestSplitsThatAreNotPossibleAreRefused(t *testing.T) {
	unloaded := testSet(t, 30, 10)
	unloaded.Test = nil
	for _, c := range []struct {
		name, want string
		set        *Set
		sel        Selection
	}{
		{"fit test without test images", "no test images", testSet(t, 30, 0), Selection{Fit: "test"}},
		{"validation test without test images", "no test images", testSet(t, 30, 0), Selection{Validation: Validation{Test: true}}},
		{"nothing left to hold out", "holds out 0 of 30", testSet(t, 30, 0), Selection{Validation: Validation{Fraction: 0.01}}},
		{"nothing left to fit", "holds out 30 of 30", testSet(t, 30, 0), Selection{Validation: Validation{Fraction: 0.99}}},
		{"not loaded", "not loaded", unloaded, Selection{Validation: Validation{Test: true}}},
	} {
		expect.Error(t, expect.Err(c.set.Split(c.sel, 1)), c.want, c.name)
	}
}

func TestDefaultsHoldOutATenthOfWhatIsNotGenerated(t *testing.T) {
	for _, c := range []struct {
		source Source
		want   float64
	}{
		{FashionMNIST(), 0.1}, {MNIST(), 0.1}, {&Swimmer{}, 0}, {&Bars{}, 0}, {&Files{Kind: "idx"}, 0.1},
		{&Files{Kind: "idx", TestImages: "a"}, 0.1}, {&Files{Kind: "npy", TestImages: "a"}, 0.1}, {&Files{Kind: "png", TestImages: "a"}, 0.1},
	} {
		sel := DefaultSelection(c.source)
		expect.Equal(t, sel, Selection{Fit: "train", Validation: Validation{Fraction: c.want}}, c.source, "default", c.want)
	}
}

func TestNeedNamesTheSplitsThatASelectionReads(t *testing.T) {
	for _, c := range []struct {
		sel  Selection
		want Need
	}{
		{Selection{Fit: "train"}, Need{Train: true}},
		{Selection{Fit: "test"}, Need{Test: true}},
		{Selection{Fit: "train", Validation: Validation{Test: true}}, Both},
		{Selection{Fit: "test", Validation: Validation{Fraction: 0.1}}, Need{Test: true}},
	} {
		if got := c.sel.Need(); !got.Equal(c.want) {
			t.Errorf("%+v: need %+v, want %+v", c.sel, got, c.want)
		}
	}
}

func TestValidationReadsAndWritesTOMLValues(t *testing.T) {
	for _, c := range []struct {
		in   any
		want Validation
	}{{"test", Validation{Test: true}}, {0.1, Validation{Fraction: 0.1}}, {int64(0), Validation{}}, {0.0, Validation{}}} {
		v := Validation{Fraction: 0.5}
		if err := v.FromTOML(c.in); err != nil || v != c.want {
			t.Errorf("%v: got %+v, %v, want %+v", c.in, v, err, c.want)
		}
		var back Validation
		if err := back.FromTOML(v.TOML()); err != nil || back != v {
			t.Errorf("%v: written as %v and read back as %+v, %v", c.in, v.TOML(), back, err)
		}
	}
	for _, in := range []any{"train", "0.1", 1.0, -0.1, int64(1), int64(-3), true, []any{}, nil} {
		v := Validation{Fraction: 0.5}
		err := v.FromTOML(in)
		expect.Error(t, err, `want "test" or a fraction in [0,1)`, in)
		expect.Equal(t, v, (Validation{Fraction: 0.5}), in, "after a refused value")
	}
}

// A user-defined source may return an invalid set.
func TestASetOfImagesOfAnotherShapeIsAnError(t *testing.T) {
	images, err := NewFloats([]int{2, 3}, make([]float32, 60), nil)
	fatal.If(t, err)
	set := &Set{Name: "odd", Shape: []int{2, 2}, Train: images}
	expect.As[*Error](t, expect.Err(set.Split(Selection{Fit: "train"}, 1)), "odd: the source returned images of shape [2 3]", "split")
	expect.As[*Error](t, expect.Err(set.Evaluation()), "", "evaluation")
}

// Messages about values of TOML have texts in quotes: "32" is not 32.
func TestMessagesQuoteTexts(t *testing.T) {
	for want, wrong := range map[string]error{
		`got "32", want a number of pixels`: new(Size).FromTOML("32"),
		`got ["3", 4], want`:                new(Size).FromTOML([]any{"3", int64(4)}),
		`got "w", want a table of names`:    new(ColumnNames).FromTOML("w"),
		`got ["a"], want "test"`:            new(Validation).FromTOML([]any{"a"}),
	} {
		if wrong == nil || !strings.Contains(wrong.Error(), want) {
			t.Errorf("got %v, want %s", wrong, want)
		}
	}
	expect.Error(t, expect.Err(findColumns([]string{"doc", "word"}, []string{"user"}, 1)), `only "doc", "word"`)
}
