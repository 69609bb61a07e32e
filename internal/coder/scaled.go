package coder

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"tessera/classical"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/vectors"
	"tessera/losses"
	"tessera/metrics"
)

var _ metrics.ValueCoder = (*plain)(nil)

// reading is how a model reads samples.
type reading struct {
	by      *data.Scaling // nil for none
	out     *data.Scaling // of the output: see [Coder.Outputs]
	missing bool          // samples have missing or hidden entries, and the model does not take NaN
	means   data.Means    // of values that no fitted sample lacks
	width   int           // number of values of a sample
}

// in returns the model's inputs for images: scaled as in the training. If entries are missing, the means and otherwise 0 replace NaN.
func (r reading) in(images []float32) []float32 {
	return zeroNaN(r.by.Applied(r.means.Fill(images, r.width)), r.missing)
}

// scaled is a coder for samples in the units before scaling, of a coder for scaled samples.
type scaled struct {
	metrics.Coder
	reading
}

func (s scaled) Unwrap() metrics.Coder { return s.Coder }

func (s scaled) Encode(images []float32) ([]float32, error) { return s.Coder.Encode(s.in(images)) }

func (s scaled) Decode(codes []float32) ([]float32, error) {
	images, err := s.Coder.Decode(codes)
	if err == nil {
		s.out.Undo(images)
	}
	return images, err
}

func (s scaled) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) {
	made, err := s.Coder.WithAtoms(a)
	return scaled{made, s.reading}, err
}

func (s scaled) TakesHoles() bool {
	return metrics.TakesHoles(s.Coder) && (s.by == nil || s.by.Mix == nil)
}

// given returns columns as the model reads them; reads describes those from which the value is computed. What a mask does not observe is
// missing, whatever its value; what is missing is not observed, whatever the mask says. Missing values that no fitted sample lacks are their means, which are observed.
func (r reading) given(columns map[string][]float32, reads []data.Column) map[string][]float32 {
	given := maps.Clone(columns)
	for name, values := range columns {
		mask := columns[maskOf(name)]
		values = unobserved(values, mask)
		switch {
		case name == losses.Images || slices.ContainsFunc(reads, func(c data.Column) bool { return c.Name == name && c.AsImages }):
			given[name] = r.in(values)
			values = r.means.Fill(values, r.width)
		case mask != nil:
			given[name] = zeroNaN(values, true)
		}
		if mask != nil || name == losses.Images && r.missing {
			given[maskOf(name)] = observed(values)
		}
	}
	return given
}

// maskOf returns the name of the column that says which values of a column are there.
func maskOf(column string) string {
	if column == losses.Images {
		return data.ObservedColumn
	}
	return column + data.ObservedSuffix
}

// unobserved returns values with NaN where the mask, nil for none, is 0. It may return the slice itself.
func unobserved(values, mask []float32) []float32 {
	if len(mask) != len(values) || !slices.Contains(mask, 0) {
		return values
	}
	values = slices.Clone(values)
	for i, there := range mask {
		if there == 0 {
			values[i] = float32(math.NaN())
		}
	}
	return values
}

// valueOf returns a value from columns before scaling; reads describes the columns from which it is computed.
func (s scaled) valueOf(name string, columns map[string][]float32, reads []data.Column) ([]float32, error) {
	values, err := s.Coder.(described).ValueOf(name, s.given(columns, reads))
	if err == nil && name == losses.Output {
		s.out.Undo(values)
	}
	return values, err
}

// components returns the components of a mixture, nil for another model.
func (s scaled) components() []metrics.Component {
	mixture, ok := metrics.As[metrics.Mixture](s.Coder)
	if !ok {
		return nil
	}
	list := mixture.Components()
	if s.by == nil {
		return list
	}
	for _, c := range list {
		s.unmix(c)
		for i, f := range s.by.Factor {
			c.Mean[i] = c.Mean[i]/float64(f) + s.by.ShiftOf(i)
			for j := range c.Mean {
				if c.Covariance != nil {
					c.Covariance[i*len(c.Mean)+j] /= float64(f) * float64(s.by.Factor[j])
				}
			}
		}
	}
	return list
}

// unmix multiplies mean and covariance of a component by the inverse of the matrix of a whitening.
func (s scaled) unmix(c metrics.Component) {
	n := len(c.Mean)
	if s.by.Unmix == nil {
		return
	}
	u := mat.NewDense(n, n, vectors.Wide(s.by.Unmix))
	var mean, left, both mat.Dense
	mean.Mul(u, mat.NewDense(n, 1, c.Mean))
	copy(c.Mean, mean.RawMatrix().Data)
	if c.Covariance != nil {
		left.Mul(u, mat.NewDense(n, n, c.Covariance))
		both.Mul(&left, u)
		copy(c.Covariance, both.RawMatrix().Data)
	}
}

// zeroNaN returns values with 0 for NaN if missing is true. It may return the slice itself.
func zeroNaN(values []float32, missing bool) []float32 {
	isNaN := func(v float32) bool { return v != v }
	if !missing || !slices.ContainsFunc(values, isNaN) {
		return values
	}
	values = slices.Clone(values)
	for i, v := range values {
		if isNaN(v) {
			values[i] = 0
		}
	}
	return values
}

// observed returns the mask of the observed values: 0 for NaN, else 1.
func observed(values []float32) []float32 {
	mask := make([]float32, len(values))
	for i, v := range values {
		if v == v {
			mask[i] = 1
		}
	}
	return mask
}

// plain is a method of package classical: it computes codes and outputs of images, and has no heads.
type plain struct{ classical.Model }

func (p plain) Unwrap() metrics.Coder { return p.Model }

func (plain) Values() []string { return []string{losses.Code, losses.Output} }

func (plain) Named() []string { return nil }

// ShapeOf returns the shape of the code and of the output.
func (p plain) ShapeOf(name string) []int {
	switch name {
	case losses.Code:
		return []int{p.Units()}
	case losses.Output:
		return p.Shape()
	}
	return nil
}

func (plain) ClassHeads() []string      { return nil }
func (plain) ClassColumn(string) string { return data.LabelsColumn }
func (p plain) LastWeight() []float32   { return metrics.LastWeight(p.Model) }

func (p plain) Columns(string) []data.Column {
	return []data.Column{{Name: losses.Images, Shape: p.Shape(), Type: data.Float32}}
}

func (plain) Decodes() error { return nil }

func (plain) Reconstructs() error { return nil }

func (p plain) Value(name string, images []float32) ([]float32, error) {
	return p.ValueOf(name, map[string][]float32{losses.Images: images})
}

// ValueOf returns the code or the output of images.
func (p plain) ValueOf(name string, columns map[string][]float32) ([]float32, error) {
	if name != losses.Code && name != losses.Output {
		return nil, fmt.Errorf("a model of this kind has no value %q, want one of %s", name, table.Quoted(p.Values()))
	}
	values, err := p.Encode(columns[losses.Images])
	if err == nil && name == losses.Output {
		values, err = p.Model.Decode(values)
	}
	return values, err
}
