package tessera

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/data"
)

// Traversal describes which codes are decoded by [Run.Traverse].
type Traversal struct {
	Base  []float32 // code that is changed, of [Run.Units] values; nil means the mean code of the fitted images
	Units []int     // units that are changed, one at a time; nil means the Most units with the largest effect
	Most  int       // 0 means 10
	Steps int       // number of values of each unit; 0 means 9
}

// Traversed contains decoded images in which one unit at a time goes through its range.
type Traversed struct {
	Units  []int
	Ranges [][2]float32 // smallest and largest value of each unit
	Effect []float64    // root mean square difference of the images at the two ends, in the units before scaling
	Images []float32    // units x steps images, row-major

	base []float32
}

// Code returns the base code with the unit at index i of Units at a share of its range, from 0 to 1.
func (t *Traversed) Code(i int, share float32) []float32 {
	code, ends := slices.Clone(t.base), t.Ranges[i]
	code[t.Units[i]] = (1-share)*ends[0] + share*ends[1]
	return code
}

// Traverse decodes codes that differ from a base code in one unit, whose value goes through its range in equal steps. The range of
// a unit is that from its 1 % to its 99 % quantile over the codes of at most 10,000 evenly spaced fitted images. Without given
// units it chooses those with the largest effect, in descending order. It returns a [*data.Error] if images are missing, and
// an error for a model that does not decode codes.
func (r *Run) Traverse(ctx context.Context, t Traversal) (*Traversed, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Path, err)
	}
	units := r.Units()
	if t.Most == 0 {
		t.Most = 10
	}
	if t.Steps == 0 {
		t.Steps = 9
	}
	switch {
	case t.Steps < 2 || t.Most < 1:
		return nil, fmt.Errorf("run %s: traverse: got %d steps of at most %d units, want at least 2 steps and 1 unit", r.Path, t.Steps, t.Most)
	case t.Base != nil && len(t.Base) != units:
		return nil, fmt.Errorf("run %s: traverse: got a code of %d values, want %d", r.Path, len(t.Base), units)
	}
	if i := slices.IndexFunc(t.Units, func(unit int) bool { return unit < 0 || unit >= units }); i >= 0 {
		return nil, fmt.Errorf("run %s: traverse: got the unit %d, want 0 to %d", r.Path, t.Units[i], units-1)
	}
	codes, err := r.fittedCodes(ctx)
	if err != nil {
		return nil, err
	}
	ranges, base := make([][2]float32, units), slices.Clone(t.Base)
	for j := range units {
		values := column(codes, units, j)
		slices.Sort(values)
		last := float64(len(values) - 1)
		ranges[j] = [2]float32{values[int(0.01*last)], values[int(math.Ceil(0.99*last))]}
		if t.Base == nil {
			sum := 0.0
			for _, v := range values {
				sum += float64(v)
			}
			base = append(base, float32(sum/float64(len(values))))
		}
	}
	effects, err := r.effects(base, ranges)
	if err != nil {
		return nil, err
	}
	if t.Units == nil {
		for j := range units {
			t.Units = append(t.Units, j)
		}
		slices.SortStableFunc(t.Units, func(a, b int) int { return cmp.Compare(effects[b], effects[a]) })
		t.Units = t.Units[:min(t.Most, units)]
	}
	of := &Traversed{Units: t.Units, base: base}
	var changed []float32
	for _, j := range t.Units {
		of.Ranges, of.Effect = append(of.Ranges, ranges[j]), append(of.Effect, effects[j])
		for step := range t.Steps {
			changed = append(changed, base...)
			changed[len(changed)-units+j] = between(ranges[j][0], ranges[j][1], step, t.Steps)
		}
	}
	of.Images, err = r.decodeEach(changed)
	return of, err
}

// between returns the value of a step from a to b; both ends are exact.
func between(a, b float32, step, steps int) float32 {
	w := float64(step) / float64(steps-1)
	return float32((1-w)*float64(a) + w*float64(b))
}

// effects returns, for every unit, the root mean square difference of the images that the ends of its range give.
func (r *Run) effects(base []float32, ranges [][2]float32) ([]float64, error) {
	var codes []float32
	for j, ends := range ranges {
		for _, end := range ends {
			codes = append(codes, base...)
			codes[len(codes)-len(base)+j] = end
		}
	}
	images, err := r.decodeEach(codes)
	if err != nil {
		return nil, err
	}
	effects, pixels := make([]float64, len(ranges)), len(images)/(2*len(ranges))
	for j := range effects {
		for i, v := range images[2*j*pixels : (2*j+1)*pixels] {
			d := float64(v) - float64(images[(2*j+1)*pixels+i])
			effects[j] += d * d / float64(pixels)
		}
		effects[j] = math.Sqrt(effects[j])
	}
	return effects, nil
}

// Interpolate decodes codes in equal steps from the code of each sample to that of the next one: steps images for each pair, which
// begin and end with the reconstructions of the two. It returns an error for fewer than two samples or steps, and for a model that
// does not decode codes.
func (r *Run) Interpolate(ctx context.Context, samples *data.Images, steps int) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Path, err)
	}
	if samples == nil || samples.Len() < 2 || steps < 2 {
		return nil, fmt.Errorf("run %s: interpolate: want at least 2 samples and 2 steps (got %d steps)", r.Path, steps)
	}
	codes, err := r.Codes(ctx, samples)
	if err != nil {
		return nil, err
	}
	var path []float32
	units := r.Units()
	for at := units; at < len(codes); at += units {
		for step := range steps {
			for j := range units {
				path = append(path, between(codes[at-units+j], codes[at+j], step, steps))
			}
		}
	}
	return r.decodeEach(path)
}
