package hooks

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// deadSecond returns a training whose units 0 and 2 reconstruct the pixels 0 and 1, and whose unit 1 is dead.
func deadSecond(t *testing.T) *fake {
	f := newFake(t, []float32{1, 0, 0, 0}, []float32{0, 1, 0, 0}, []float32{0, 0, 0.3, 0}, []float32{0, 0, 0.6, 0.8})
	w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
	w[0*3+0], w[1*3+2] = 2, 4 // norms 2 and 4
	d[0*4+0], d[2*4+1] = 0.5, 0.25
	w[0*3+1], b[1], d[1*4+3] = 0.5, -7, 0.125 // never active
	for _, p := range f.parameters {
		for i := range p.State[0] {
			p.State[0][i] = 1
		}
	}
	return f
}

func TestADeadUnitTakesTheImageWithTheLargestError(t *testing.T) {
	f := deadSecond(t)
	hook := &Revive{Every: 2, Threshold: 0.01, Sample: 100}
	active, err := hook.Attach(f)
	fatal.If(t, err)
	fatal.If(t, active.Begin())
	before := [][]float32{}
	for _, p := range f.parameters {
		before = append(before, slices.Clone(p.Data))
	}
	for _, f.epoch = range []int{0, 1} {
		fatal.If(t, active.BeginEpoch())
	}
	for i, p := range f.parameters {
		if !slices.Equal(p.Data, before[i]) {
			t.Fatalf("%s has changed before its epoch", p.Path)
		}
	}
	f.epoch = 2
	fatal.If(t, active.BeginEpoch())
	v := []float32{0, 0, 0.6, 0.8} // of norm 1: the worst image
	w, b, d := f.parameters[0], f.parameters[1], f.parameters[2]
	want := [][]float32{before[0], before[1], before[2], before[3]}
	for i := range v {
		want[0][i*3+1] = 3 * v[i]     // the mean of 2 and 4
		want[2][1*4+i] = 0.375 * v[i] // of 0.5 and 0.25
	}
	want[1][1] = 0
	for i, p := range f.parameters {
		for j := range p.Data {
			if math.Abs(float64(p.Data[j]-want[i][j])) > 1e-6 {
				t.Errorf("%s[%d] is %v, want %v", p.Path, j, p.Data[j], want[i][j])
			}
		}
	}
	for _, c := range []struct {
		p     *Parameter
		drawn []int
	}{{w, []int{1, 4, 7, 10}}, {b, []int{1}}, {d, []int{4, 5, 6, 7}}} {
		for i, s := range c.p.State[0] {
			expect.Equal(t, slices.Contains(c.drawn, i), (s == 0), c.p.Path, "the optimizer's state of element", i, "is", s)
			if drawn := slices.Contains(c.drawn, i); drawn && f.follows[c.p.Index][i] != c.p.Data[i] || !drawn && f.follows[c.p.Index][i] != 0 {
				t.Errorf("%s: its average has %v at %d", c.p.Path, f.follows[c.p.Index][i], i)
			}
		}
	}
	expect.Slice(t, f.projected, []string{w.Path, b.Path, d.Path}, "projected")
	f.epoch = 4
	fatal.If(t, active.BeginEpoch())
	expect.Equal(t, len(f.projected), 3, "a living unit was re-initialised")
}

// With more dead units than images, the remaining units do not change. If all units are dead, the mean norm is over all
// units.
func TestAllDeadUnitsAreRevivedAsFarAsImagesGo(t *testing.T) {
	f := newFake(t, []float32{0, 0, 0, 2}, []float32{0, 1, 0, 0})
	w, b := f.parameters[0].Data, f.parameters[1].Data
	w[0], w[1], w[2] = 1, 2, 3
	b[0], b[1], b[2] = -9, -9, -9
	begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100}, 1)
	if want := []float32{0, 0, 3, 0, 2, 0, 0, 0, 0, 2, 0, 0}; !slices.Equal(w, want) || !slices.Equal(b, []float32{0, 0, -9}) {
		t.Errorf("got %v and %v, want %v", w, b, want)
	}
}

func TestReviveWantsOneDenseEncoder(t *testing.T) {
	for _, change := range []func(f *fake){
		func(f *fake) { f.parameters[0].Shape = []int{2, 2, 1, 3} },
		func(f *fake) { f.parameters[0].Path = "decoder.2.weight" },
		func(f *fake) { f.parameters[2].Path = "encoder.1.weight" },
		func(f *fake) { f.parameters[0].Trainable = false },
	} {
		f := deadSecond(t)
		change(f)
		expect.AnyError(t, expect.Err((&Revive{Every: 1, Threshold: 0.01, Sample: 1}).Attach(f)), "is attached")
	}
	f := deadSecond(t)
	f.parameters[0].Shape = []int{2, 6}
	active, err := (&Revive{Every: 1, Threshold: 0.01, Sample: 1}).Attach(f)
	fatal.If(t, err)
	expect.AnyError(t, active.Begin(), "a layer that does not read the pixels is taken")
}

// The first pixel of the worst image is already reconstructed: the first dead unit gets the residual of this image, and the
// second one gets the largest residual that then remains.
func TestADeadUnitTakesWhatIsMissing(t *testing.T) {
	f := newFake(t, []float32{1, 0, 0.6, 0.8}, []float32{0, 0.5, 0.3, 0.4})
	w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
	w[0], d[0] = 1, 1   // unit 0 reconstructs pixel 0
	b[1], b[2] = -9, -9 // units 1 and 2 are dead
	active := begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100, Residuals: true, Until: 1}, 1)
	want := []float32{1, 0, 0, 0, 0, 1, 0, 0.6, 0, 0, 0.8, 0}
	for i, v := range w {
		if math.Abs(float64(v-want[i])) > 1e-6 {
			t.Fatalf("got %v, want %v", w, want)
		}
	}
	b[1], w[4] = -9, 0
	f.epoch = 2
	fatal.If(t, active.BeginEpoch())
	expect.Equal(t, b[1], -9, "a unit was re-initialised after the last epoch for it")
}

// Units 0 and 1 share pixel 0 and explain all images. Only with the key common is unit 2 needed.
func TestADeadUnitTakesWhatTwoAtomsHaveInCommon(t *testing.T) {
	for _, common := range []bool{false, true} {
		f := newFake(t, []float32{0.6, 0.8, 0, 0}, []float32{0.6, 0, 0.8, 0})
		w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
		w[1*3+0], w[2*3+1] = 1.25, 1.25 // units 0 and 1 see the pixels 1 and 2
		copy(d, []float32{0.6, 0.8, 0, 0, 0.6, 0, 0.8, 0})
		b[2] = -9 // unit 2 is dead
		begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100, Residuals: true, Common: common}, 1)
		want := []float32{0, 0, 0, 0}
		if common {
			want[0] = 1 // the mean norm of the other rows is 1
		}
		for i, v := range d[8:] {
			if math.Abs(float64(v-want[i])) > 1e-6 {
				t.Errorf("common = %v: got the atom %v, want %v", common, d[8:], want)
				break
			}
		}
	}
}

// Two equal atoms have in common what is an atom already, and atoms of different signs have nothing in common.
func TestWhatIsAnAtomAlreadyIsNotTakenAgain(t *testing.T) {
	f := newFake(t, []float32{0.5, 1, 0, 0})
	w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
	copy(w, []float32{1, 1, 0, 0.5, 0.5, 0}) // two codes of 1
	copy(d, []float32{0.25, 0.5, 0, 0, 0.25, 0.5, 0, 0})
	b[2] = -9
	begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100, Residuals: true, Common: true}, 1)
	if got := d[8:]; b[2] != -9 || !slices.Equal(got, []float32{0, 0, 0, 0}) {
		t.Errorf("the dead unit became %v", got)
	}
	expect.Equal(t, len(commonest([][]float32{{-1, 0}, {1, 0}, {0, 1}})), 0, "pairs")
}

// Unit 0 has pixel 0 of the first image, and unit 1 saves an error of 0.01 at its pixel 3. A unit for the second image would save 1.
func TestAUnitThatSavesLittleIsExchanged(t *testing.T) {
	for factor, want := range map[float64][]float32{0: {0, 0, 0, 1}, 99: {0, 0.6, 0.8, 0}, 101: {0, 0, 0, 1}} {
		f := newFakeOf(t, 2, []float32{1, 0, 0, 0.1}, []float32{0, 0.6, 0.8, 0})
		w, d := f.parameters[0].Data, f.parameters[2].Data
		w[0], w[3*2+1], d[0], d[4+3] = 1, 1, 1, 1
		begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100, Residuals: true, Exchange: factor}, 1)
		alike(t, fmt.Sprint("the exchanged atom with the factor ", factor), d[4:], want)
		alike(t, "the other atom", d[:4], []float32{1, 0, 0, 0})
		alike(t, "its weights", []float32{w[0], w[2], w[4], w[6]}, []float32{1, 0, 0, 0})
	}
}

// The two units add up to 1.5 at pixel 0 of the first image. This is no error if 1 is the largest pixel.
func TestAnOutputAboveASaturatedPixelIsNoErrorOfAnExchange(t *testing.T) {
	for _, largest := range []float32{1, 2} {
		f := newFakeOf(t, 2, []float32{1, 0, 0, 0}, []float32{0, 0.06, 0.08, largest})
		w, d := f.parameters[0].Data, f.parameters[2].Data
		w[0], w[1], d[0], d[4] = 1, 1, 1, 0.5
		h := &reviving{Revive: &Revive{}, unitWeights: &unitWeights{training: f}, sample: 2, decode: linear{f, Output}}
		want := 0.01 + float64(largest*largest)
		if largest == 2 {
			want += 0.25 // pixel 0 is not the largest
		}
		if got, err := h.error(slices.Max(h.pixels(2)), func([]float32) {}); err != nil || math.Abs(got-want) > 1e-6 {
			t.Errorf("largest pixel %v: got an error of %v (%v), want %v", largest, got, err, want)
		}
	}
}

func TestExchangeNeedsResiduals(t *testing.T) {
	expect.Error(t, (&Revive{Every: 1, Exchange: 2}).Check(), "residuals = true")
}

func TestAnExchangeWithAWorseUnitIsAnError(t *testing.T) {
	for factor, wrong := range map[float64]bool{0: false, 0.01: true, 0.99: true, 1: false, 2: false} {
		err := (&Revive{Every: 1, Residuals: true, Exchange: factor}).Check()
		if wrong && (err == nil || !strings.Contains(err.Error(), "want 0 (never) or >= 1")) || !wrong && err != nil {
			t.Errorf("exchange = %g: got %v", factor, err)
		}
	}
}

func TestCommonNeedsResiduals(t *testing.T) {
	for _, residuals := range []bool{false, true} {
		err := (&Revive{Every: 1, Common: true, Residuals: residuals}).Check()
		if residuals && err != nil || !residuals && (err == nil || !strings.Contains(err.Error(), "residuals = true")) {
			t.Errorf("residuals = %v: got %v", residuals, err)
		}
	}
}

func alike(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > 1e-5*math.Abs(float64(want[i]))+1e-12 {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// Unit 1 has the atom of unit 0 and pixel 1, and stands for both where they are together.
func TestAnAtomIsTakenOutOfAnotherThatContainsIt(t *testing.T) {
	for _, c := range []struct {
		together bool
		want     []float32
	}{{false, []float32{0, 0.6, 0, 0}}, {true, []float32{0.8, 0.6, 0, 0}}} {
		f := newFakeOf(t, 2, []float32{0, 0, 1, 0}, []float32{0.8, 0.6, 0, 0})
		w, d := f.parameters[0].Data, f.parameters[2].Data
		w[2*2+0], w[1*2+1] = 1, 1/0.6 // units 0 and 1 see the pixels 2 and 1
		if c.together {
			w[1*2+0] = 1
		}
		copy(d, []float32{1, 0, 0, 0, 0.8, 0.6, 0, 0})
		begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100, Residuals: true, Common: true}, 1)
		alike(t, fmt.Sprint("the atom that contains the other, active together: ", c.together), d[4:], c.want)
		alike(t, "the other", d[:4], []float32{1, 0, 0, 0})
	}
}

func TestCommonOfTooManyUnitsIsAnError(t *testing.T) {
	for units, wrong := range map[int]bool{mostCommon: false, mostCommon + 1: true} {
		f := deadSecond(t)
		f.parameters[0].Shape = []int{4, units}
		_, err := (&Revive{Every: 1, Threshold: 0.01, Sample: 1, Residuals: true, Common: true}).Attach(f)
		expect.Equal(t, err != nil && strings.Contains(err.Error(), "at most 4096"), wrong, units, "units")
		expect.NoError(t, expect.Err((&Revive{Every: 1, Threshold: 0.01, Sample: 1}).Attach(f)), "without common")
	}
}

// A whole image on top of reconstructions that fit must not raise the error: without the search for a scale it rose from 0.04 to 19.
func TestAReinitialisedUnitDoesNotRaiseTheError(t *testing.T) {
	f := newFake(t, []float32{1, 0.2, 0, 0}, []float32{0.1, 1, 0, 0}, []float32{1, 1, 0, 0})
	w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
	w[0*3+0], d[0*4+0], w[1*3+1], d[1*4+1] = 1, 1, 1, 1 // the pixels 0 and 1
	d[0*4+2] = 0.1                                      // a small error
	b[2] = -9
	error := func() float64 {
		h := &reviving{unitWeights: &unitWeights{training: f}, sample: 3, decode: linear{f, Output}}
		sum, err := h.squaredError()
		fatal.If(t, err)
		return sum
	}
	before := error()
	begun(t, f, &Revive{Every: 1, Threshold: 0.01, Sample: 100}, 1)
	if after := error(); after > 1.02*before || w[2] == 0 {
		t.Errorf("the error rose from %g to %g; the unit's first weight is %g", before, after, w[2])
	}
}
