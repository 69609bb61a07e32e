package laws

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/data"
)

// Scaling contains the laws of scalings, tested on counts, as vectors and as images.
var Scaling = inTrials(eachScalingTrial, []law[scalingTrial]{
	{"scales every sample by itself", scalingTrial.rowwise},
	{"gives finite values", scalingTrial.finite},
	{"scales rows of a sparse matrix as complete ones", scalingTrial.sparse},
	{"leaves missing values missing, and does not read them", scalingTrial.missing},
	{"is undone by its inverse", scalingTrial.undone},
	{"gives the same values for the same samples, which it leaves as they are", scalingTrial.repeatable},
	{"is that of any samples if it fits none", scalingTrial.unfitted},
	{"is the same when it is read again", scalingTrial.stored},
})

// scalingTrial is a scaling with samples of counts: fitted ones, of which one is 0 and one value is 1 in all, and others.
type scalingTrial struct {
	fresh          func() data.Scaler
	shape          []int
	fitted, others []float32
	n, values      int
}

func (t scalingTrial) String() string { return fmt.Sprintf("samples of shape %v", t.shape) }

func eachScalingTrial(fresh func() data.Scaler, try func(t scalingTrial)) error {
	for _, shape := range [][]int{{8}, {2, 2, 2}} {
		r := rand.New(rand.NewPCG(7, 8))
		t := scalingTrial{fresh: fresh, shape: shape, n: 12, values: 8}
		draw := func() (all []float32) {
			for i := range t.n * t.values {
				v := float32(max(0, r.IntN(9)-3))
				if row, j := i/t.values, i%t.values; j == 5 && len(shape) == 1 {
					v = 1
				} else if row == 4 {
					v = 0
				}
				all = append(all, v)
			}
			return all
		}
		t.fitted, t.others = draw(), draw()
		try(t)
	}
	return nil
}

// samples returns samples that are not sparse.
func (t scalingTrial) samples(values []float32) *data.Images {
	m, err := data.NewFloats(t.shape, slices.Clone(values), nil)
	if err != nil {
		panic(err) // of this file
	}
	return m
}

// entries returns the same samples, vectors, as rows of a sparse matrix.
func (t scalingTrial) entries(values []float32) *data.Images {
	starts, columns, kept := []int{0}, []int32(nil), []float32(nil)
	for row := range slices.Chunk(values, t.values) {
		for j, v := range row {
			if v != 0 {
				columns, kept = append(columns, int32(j)), append(kept, v)
			}
		}
		starts = append(starts, len(kept))
	}
	m, err := data.NewEntries(starts, columns, kept, t.values)
	if err != nil {
		panic(err) // of this file
	}
	return m.WithZeros()
}

// fit returns a fresh scaling of samples.
func (t scalingTrial) fit(m *data.Images) (*data.Scaling, error) {
	s, err := t.fresh().Fit(m)
	if err == nil && s == nil {
		err = errors.New("got from Fit neither a scaling nor an error")
	}
	if err == nil {
		err = s.Valid(t.values)
	}
	return s, err
}

// scaledNear reports values that differ by more than rounding.
func scaledNear(what string, got, want []float32) error {
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - float64(v)); !(d <= 1e-5*max(1, math.Abs(float64(v)))) && !(got[i] != got[i] && v != v) {
			return fmt.Errorf("%s: value %d is %v, want %v", what, i, got[i], v)
		}
	}
	return nil
}

func (t scalingTrial) rowwise() error {
	s, err := t.fit(t.samples(t.fitted))
	if err != nil {
		return err
	}
	all, rows := s.Applied(t.others), slices.Clone(t.others)
	for row := range slices.Chunk(rows, t.values) {
		s.Apply(row)
	}
	return differ("samples alone", rows, all)
}

func (t scalingTrial) finite() error {
	s, err := t.fit(t.samples(t.fitted))
	if err != nil {
		return err
	}
	for _, v := range []float32{0, -1, -1e6, 1e-20, 1e20} {
		for i, y := range s.Applied(slices.Repeat([]float32{v}, t.values)) {
			if notFinite(y) {
				return fmt.Errorf("value %d of a sample of %v becomes %v", i, v, y)
			}
		}
	}
	return nil
}

func (t scalingTrial) sparse() error {
	if len(t.shape) > 1 {
		return nil
	}
	s, err := t.fit(t.samples(t.fitted))
	if err != nil {
		return err
	}
	of, err := t.fit(t.entries(t.fitted))
	if err != nil {
		return fmt.Errorf("fitted to a sparse matrix: %w", err)
	}
	rows := t.entries(t.others).Scaled(of)
	got := make([]float32, 0, len(t.others))
	for i := range t.n {
		row := make([]float32, t.values)
		if columns, values := rows.Entries(i); rows.Zeros() {
			for e, j := range columns {
				row[j] = values[e]
			}
		} else {
			rows.Batch(row, []int{i})
		}
		got = append(got, row...)
	}
	return scaledNear("a sparse matrix", got, s.Applied(t.others))
}

func (t scalingTrial) missing() error {
	s, err := t.fit(t.samples(t.fitted))
	if err != nil || s.Mix != nil { // a mixture needs all values
		return err
	}
	nan, row := float32(math.NaN()), slices.Clone(t.others[:t.values])
	row[2] = nan
	scaled := s.Applied(row)
	row[2] = 0
	want := s.Applied(row)
	want[2] = nan
	return scaledNear("a sample with a missing value", scaled, want)
}

func (t scalingTrial) undone() error {
	s, err := t.fit(t.samples(t.fitted))
	if err != nil || s.Lossy() != "" {
		return err
	}
	y := s.Applied(t.fitted)
	s.Undo(y)
	return scaledNear("the inverse of scaled samples", y, t.fitted)
}

func (t scalingTrial) repeatable() error {
	m := t.samples(t.fitted)
	first, err := t.fit(m)
	if err != nil {
		return err
	}
	if err := differ("samples after the fit", m.Float32(), t.fitted); err != nil {
		return err
	}
	if second, err := t.fit(m); err != nil {
		return err
	} else if err := differ("a second fit", second.Applied(t.others), first.Applied(t.others)); err != nil {
		return err
	}
	return differ("applied twice", first.Applied(t.others), first.Applied(t.others))
}

func (t scalingTrial) unfitted() error {
	if t.fresh().Fits() {
		return nil
	}
	one, err := t.fit(t.samples(t.fitted))
	if err != nil {
		return err
	}
	other, err := t.fit(t.samples(t.others))
	if err != nil {
		return err
	}
	return differ("fitted to other samples", other.Applied(t.others), one.Applied(t.others))
}

func (t scalingTrial) stored() error {
	s, err := t.fit(t.samples(t.fitted))
	if err != nil {
		return err
	}
	again := *s
	again.Steps = nil
	text, err := json.Marshal(s.Steps)
	if err == nil {
		err = json.Unmarshal(text, &again.Steps)
	}
	if err == nil {
		err = again.Valid(t.values)
	}
	if err != nil {
		return err
	}
	return differ("values of the scaling that was stored", again.Applied(t.others), s.Applied(t.others))
}
