package hooks

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"tessera/config/part"
	"tessera/data"
	"tessera/layers"
)

// Decorrelation fits a first layer `decorrelate` to the training samples, before the first step of a new run. Every model with such a layer has this
// hook, declared or not. A layer with parameters from another run keeps them.
type Decorrelation struct{}

func init() {
	Registry.Register("decorrelation", "fits a first layer decorrelate to the training samples", func() Hook { return &Decorrelation{} })
}

func (*Decorrelation) Prepares(preparation any) bool {
	_, ok := preparation.(layers.Decorrelation)
	return ok
}

func (*Decorrelation) Stage() Stage             { return Prepare }
func (*Decorrelation) Replicated() (state bool) { return false }

// notDecorrelating is the error for a model whose first layer is not decorrelate.
var notDecorrelating = part.KeyError{Key: "encoder", Problem: "its first layer is not decorrelate"}

func (d *Decorrelation) Suits(m Declared) error {
	if !d.Prepares(m.Preparation) {
		return notDecorrelating
	}
	return nil
}

func (*Decorrelation) Attach(t Training) (*Active, error) {
	of, ok := t.Preparation().(layers.Decorrelation)
	if !ok {
		return nil, notDecorrelating
	}
	return &Active{Initialise: func() error {
		weight, bias, err := decorrelation(t.Images(), of.Column)
		if err != nil {
			return err
		}
		for name, values := range map[string][]float32{"weight": weight, "bias": bias} {
			for _, p := range t.Parameters("encoder.0." + name) {
				if !p.Started {
					copy(p.Data, values)
				}
			}
		}
		return nil
	}}, nil
}

// decorrelation fits the layer to the samples and to the groups in a column. It returns the layer's weight and bias.
func decorrelation(images *data.Images, column string) (weight, bias []float32, err error) {
	fail := func(problem string) error {
		return &data.Error{Problem: fmt.Sprintf("decorrelate: the column %q %s", column, problem)}
	}
	if c, ok := images.Column(column); !ok || c.Type != data.Whole || c.Size() != 1 {
		return nil, nil, fail("is not one of groups: want one whole number or text for each sample")
	}
	groups, known := images.Classes(column), []int{}
	place := map[int]int{} // of the groups that occur
	for i, g := range groups {
		if g < 0 {
			continue
		}
		known = append(known, i)
		if _, ok := place[g]; !ok {
			place[g] = len(place)
		}
	}
	if len(place) < 2 {
		return nil, nil, fail(fmt.Sprintf("has %d groups among the training samples, want at least 2 to tell apart", len(place)))
	}
	n, p := float64(len(known)), images.Pixels()
	rows := make([]float32, p)
	mean, shares := make([]float64, p), make([]float64, len(place))
	each := func(do func(row []float32, group int)) {
		for _, i := range known {
			images.Batch(rows, []int{i})
			do(rows, place[groups[i]])
		}
	}
	each(func(row []float32, g int) {
		for j, v := range row {
			mean[j] += float64(v) / n
		}
		shares[g] += 1 / n
	})
	s, cross, centred := mat.NewSymDense(p, nil), mat.NewDense(p, len(place), nil), mat.NewVecDense(p, nil)
	each(func(row []float32, g int) {
		for j, v := range row {
			centred.SetVec(j, float64(v)-mean[j])
		}
		s.SymRankOne(s, 1/n, centred)
		for k, share := range shares {
			d := -share
			if k == g {
				d++
			}
			for j := range p {
				cross.Set(j, k, cross.At(j, k)+d*centred.AtVec(j)/n)
			}
		}
	})
	removed, err := removal(s, cross)
	if err != nil {
		return nil, nil, fail(err.Error())
	}
	weight, bias = make([]float32, p*p), make([]float32, p)
	for i := range p {
		for j := range p {
			w := -removed.At(i, j)
			if i == j {
				w++
			}
			weight[i*p+j] = float32(w)
		}
	}
	for j := range p {
		sum := 0.0
		for i := range p {
			sum += mean[i] * removed.At(i, j)
		}
		bias[j] = float32(sum)
	}
	return weight, bias, nil
}

// rankTolerance is relative to the largest eigenvalue or singular value: values below it are treated as 0.
const rankTolerance = 1e-10

// removal returns the matrix R P R⁻¹ of layers.Decorrelate, from the covariance s of the values and the covariances cross of
// the values with the groups. Directions without variance are mapped to 0 in R and in R⁻¹.
func removal(s *mat.SymDense, cross *mat.Dense) (*mat.Dense, error) {
	p, k := cross.Dims()
	var eigen mat.EigenSym
	if !eigen.Factorize(s, true) {
		return nil, fmt.Errorf("cannot be removed: the eigenvalues of the covariance do not converge")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil)
	power := func(exponent float64) *mat.Dense {
		scaled := mat.NewDense(p, p, nil)
		for j, v := range values {
			f := 0.0
			if v > rankTolerance*values[p-1] {
				f = math.Pow(v, exponent)
			}
			for i := range p {
				scaled.Set(i, j, vectors.At(i, j)*f)
			}
		}
		var m mat.Dense
		m.Mul(scaled, vectors.T())
		return &m
	}
	r, inverse := power(-0.5), power(0.5)
	var white mat.Dense
	white.Mul(r, cross)
	var svd mat.SVD
	if !svd.Factorize(&white, mat.SVDThin) {
		return nil, fmt.Errorf("cannot be removed: the singular values do not converge")
	}
	var u mat.Dense
	svd.UTo(&u)
	singular := svd.Values(nil)
	projection := mat.NewDense(p, p, nil)
	for j := range min(p, k) {
		if !(singular[j] > rankTolerance) || singular[j] <= rankTolerance*singular[0] {
			continue
		}
		column := mat.NewVecDense(p, nil)
		column.CopyVec(u.ColView(j))
		projection.RankOne(projection, 1, column, column)
	}
	var left, m mat.Dense
	left.Mul(r, projection)
	m.Mul(&left, inverse)
	return &m, nil
}
