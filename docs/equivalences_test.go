package docs_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"
	"tessera"
	"tessera/apps/show/figures"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
)

// The tests of docs/equivalences.md.

// spectrum returns n normal vectors of d values with random principal axes. The standard deviations along the first axes are
// given; along the other axes they are 0.2.
func spectrum(seed uint64, n, d int, deviations ...float64) []float32 {
	r := random.Stream(seed, "spectrum", 0)
	normal := func(rows, columns int) *mat.Dense {
		m := mat.NewDense(rows, columns, nil)
		for i := range rows {
			for j := range columns {
				m.Set(i, j, r.NormFloat64())
			}
		}
		return m
	}
	var qr mat.QR
	qr.Factorize(normal(d, d))
	var q, y mat.Dense
	qr.QTo(&q)
	x := normal(n, d)
	for j := range d {
		deviation := 0.2
		if j < len(deviations) {
			deviation = deviations[j]
		}
		for i := range n {
			x.Set(i, j, deviation*x.At(i, j))
		}
	}
	y.Mul(x, q.T())
	values := make([]float32, n*d)
	for i, v := range y.RawMatrix().Data {
		values[i] = float32(v + 1)
	}
	return values
}

// generated returns the images of a generated data set as vectors.
func generated(t *testing.T, s data.Source) (values []float32, d int) {
	t.Helper()
	set, err := data.Load(context.Background(), s, nil, data.Both)
	fatal.If(t, err)
	return set.Train.Float32(), set.Train.Pixels()
}

// overlapping returns a data set of images of 12 x 12 pixels with 6 parts.
func overlapping() data.Source {
	return &data.Shapes{Parts: 6, Height: 12, Width: 12, Size: 0.5, Count: 200, Density: 0.4, Overlap: 0.7, Seed: 3}
}

// trained returns the atoms, k x d, of a model trained by full-batch Adam on vectors. The learning rate falls from rate to 0
// over the given number of steps.
func trained(t *testing.T, values []float32, d int, m config.Model, steps int, rate float64, keys ...string) *mat.Dense {
	t.Helper()
	images, err := data.FromFloats(values, []int{d}, nil)
	fatal.If(t, err)
	m.Name, m.Dataset.Source = "it", images
	m.Optimizer.Optimizer = &optim.Adam{Rate: rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	m.Optimizer.Schedule.Kind = "cosine"
	m.Train.Batch, m.Train.Epochs, m.Train.MinEpochSteps, m.Train.Seed = len(values)/d, 10, steps/10, 1
	var changes []config.Set
	for _, key := range append(keys, "dataset.validation=0.0") {
		change, err := config.ParseSet(key)
		fatal.If(t, err)
		changes = append(changes, change)
	}
	model, err := tessera.Declare(m, changes...)
	fatal.If(t, err)
	run, err := tessera.Train(context.Background(), model, tessera.Options{Out: filepath.Join(t.TempDir(), "run"), Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	return wide(run.Atoms().Values, d)
}

// wide converts rows of d values to float64.
func wide(values []float32, d int) *mat.Dense {
	m := mat.NewDense(len(values)/d, d, nil)
	for i, v := range values {
		m.Set(i/d, i%d, float64(v))
	}
	return m
}

// principal returns the first principal axes of vectors, k x d, and the variances along them.
func principal(t *testing.T, values []float32, d, k int) (axes *mat.Dense, variances []float64) {
	t.Helper()
	m := fitted(t, &classical.PCA{Components: k}, values, d)
	codes, err := m.Encode(values)
	fatal.If(t, err)
	variances = make([]float64, k)
	for i, v := range codes {
		variances[i%k] += float64(v) * float64(v) / float64(len(codes)/k)
	}
	return wide(m.Atoms().Values, d), variances
}

// fitted returns a baseline fitted to vectors.
func fitted(t *testing.T, method classical.Method, values []float32, d int) classical.Model {
	t.Helper()
	m, err := method.New([]int{d}, 1)
	fatal.If(t, err)
	images, err := classical.NewMatrix(values, d)
	fatal.If(t, err)
	fatal.If(t, expect.Err(classical.Fit(context.Background(), m, images, nil)))
	return m
}

// basis returns the singular values of a matrix and its right singular vectors as columns, which are an orthonormal basis of
// the row space.
func basis(t *testing.T, rows *mat.Dense) ([]float64, *mat.Dense) {
	t.Helper()
	var svd mat.SVD
	if !svd.Factorize(rows, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	var v mat.Dense
	svd.VTo(&v)
	return svd.Values(nil), &v
}

// largestAngle returns the largest principal angle between the row spaces of two matrices, in radians. Its sine is the norm of
// one basis after projection onto the complement of the other space, which is exact for small angles.
func largestAngle(t *testing.T, a, b *mat.Dense) float64 {
	t.Helper()
	_, u := basis(t, a)
	_, v := basis(t, b)
	var inner, within, rest mat.Dense
	inner.Mul(v.T(), u)
	within.Mul(v, &inner)
	rest.Sub(u, &within)
	s, _ := basis(t, &rest)
	return math.Asin(min(1, s[0]))
}

// linear declares a linear auto-encoder of k units.
func linear(k int, more ...config.Loss) config.Model {
	return config.Model{
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: k}}}, Decoder: []config.Layer{{Layer: &layers.Dense{}}},
		Losses: append([]config.Loss{{Loss: &losses.MSE{}}}, more...),
	}
}

// The outputs of a linear auto-encoder that minimises the squared error span the space of the first principal components.
func TestALinearAutoEncoderSpansThePrincipalSubspace(t *testing.T) {
	shapes, pixels := generated(t, overlapping())
	clipped, side := generated(t, &data.Shapes{Parts: 12, Height: 8, Width: 8, Size: 0.8, Count: 150, Density: 0.3, Overlap: 0.9, Clipped: true, Noise: 0.05, Seed: 5})
	for _, set := range []struct {
		name   string
		values []float32
		d, k   int
	}{
		{"normal", spectrum(1, 300, 12, 1.5, 1.3, 1.1, 0.9), 12, 4},
		{"sums of 6 shapes", shapes, pixels, 4},
		{"12 clipped shapes, noise", clipped, side, 2},
	} {
		axes, _ := principal(t, set.values, set.d, set.k)
		atoms := trained(t, set.values, set.d, linear(set.k), 4500, 0.02)
		angle := largestAngle(t, atoms, axes)
		t.Logf("%s: %d dimensions, %d units: largest principal angle %.1e", set.name, set.d, set.k, angle)
		if !(angle < 1e-3) {
			t.Errorf("%s: largest principal angle %v, want less than 1e-3", set.name, angle)
		}
		if testing.Short() {
			break
		}
	}
}

// With weight decay, the singular vectors of the decoder are the principal axes in their order, and its singular values are
// sqrt(1 - lambda/variance).
func TestWeightDecayFindsThePrincipalAxes(t *testing.T) {
	const d, k, decay = 10, 4, 0.02
	values := spectrum(2, 400, d, 1.6, 1.3, 1, 0.7)
	axes, variances := principal(t, values, d, k)
	aligned := func(atoms *mat.Dense) (least float64, sizes []float64) {
		sizes, v := basis(t, atoms)
		least = 1
		for i := range k {
			least = min(least, math.Abs(mat.Dot(v.ColView(i), axes.RowView(i))))
		}
		return least, sizes
	}
	decayed := trained(t, values, d, linear(k, config.Loss{Loss: &losses.WeightDecay{}, On: "*.weight", Weight: &losses.Constant{Value: decay}}), 2000, 0.02)
	with, sizes := aligned(decayed)
	without, _ := aligned(trained(t, values, d, linear(k), 1000, 0.02))
	t.Logf("least cosine with a principal axis: %.6f with decay, %.3f without; singular values %.4f", with, without, sizes)
	if !(with > 0.99999) || without > 0.99 {
		t.Errorf("cosine with decay %v, want 1; without %v, want another basis", with, without)
	}
	for i, v := range variances { // the mean over d values divides the squared error, and the decay is halved
		expect.Near(t, sizes[i], math.Sqrt(1-decay*d/2/v), 1e-3, "singular value", i)
	}
}

// k-means is a factorisation X = HW in which each code has a single 1. The centres are the least-squares atoms of these codes.
func TestKMeansIsAFactorisationWithOneHotCodes(t *testing.T) {
	const d, k = 6, 5
	values := spectrum(3, 300, d, 1, 0.8)
	n := len(values) / d
	m := fitted(t, &classical.KMeans{Components: k, Iterations: 200, Restarts: 3}, values, d)
	codes, err := m.Encode(values)
	fatal.If(t, err)
	for i := range n {
		ones := 0
		for _, v := range codes[i*k : (i+1)*k] {
			if v == 1 {
				ones++
			} else if v != 0 {
				t.Fatalf("row %d: code %v", i, codes[i*k:(i+1)*k])
			}
		}
		if ones != 1 {
			t.Fatalf("row %d: code %v", i, codes[i*k:(i+1)*k])
		}
	}
	h, x := wide(codes, k), wide(values, d)
	var gram, right, best, rest mat.Dense
	gram.Mul(h.T(), h)
	right.Mul(h.T(), x)
	fatal.If(t, best.Solve(&gram, &right))
	if !mat.EqualApprox(&best, wide(m.Atoms().Values, d), 1e-5) {
		t.Error("the centres are not the least squares atoms of the codes")
	}
	rest.Mul(h, &best)
	rest.Sub(x, &rest)
	objective := m.State().Numbers["objective"]
	if e := mat.Norm(&rest, 2); math.Abs(e*e/float64(n*d)-objective) > 1e-5*objective {
		t.Errorf("squared error %v, k-means %v", e*e/float64(n*d), objective)
	}
}

// projective fits W >= 0 (k x d) to min |X - X W'W|^2 by the multiplicative rule of Yuan and Oja (2005), and returns W and the mean squared error.
func projective(x *mat.Dense, w *mat.Dense, iterations int) (*mat.Dense, float64) {
	n, d := x.Dims()
	k, _ := w.Dims()
	var gram mat.Dense
	gram.Mul(x.T(), x)
	for range iterations {
		var wc, wwt, a, b mat.Dense
		wc.Mul(w, &gram) // k x d
		wwt.Mul(w, w.T())
		a.Mul(&wwt, &wc) // W W' W C
		var wcw mat.Dense
		wcw.Mul(&wc, w.T())
		b.Mul(&wcw, w) // W C W' W
		for i := range k {
			for j := range d {
				if sum := a.At(i, j) + b.At(i, j); sum > 0 {
					w.Set(i, j, w.At(i, j)*math.Sqrt(2*wc.At(i, j)/sum)) // the root of the factor, with which the error never rises
				}
			}
		}
	}
	var codes, rest mat.Dense
	codes.Mul(x, w.T())
	rest.Mul(&codes, w)
	rest.Sub(x, &rest)
	e := mat.Norm(&rest, 2)
	return w, e * e / float64(n*d)
}

// A linear auto-encoder with one non-negative weight, tied and without biases, is projective NMF.
func TestATiedNonNegativeLinearAutoEncoderIsProjectiveNMF(t *testing.T) {
	values, d := generated(t, overlapping())
	const k, steps = 6, 1500
	atoms := trained(t, values, d, config.Model{Encoder: []config.Layer{{Layer: &layers.Dense{Units: k}}}},
		steps, 0.01,
		`encoder=[{kind="dense",units=6,bias=false}]`, `decoder=[{kind="tied",bias=false}]`, `constraint=[{kind="nonneg",on="encoder.*.weight"}]`)
	x := wide(values, d)
	var codes, rest mat.Dense
	codes.Mul(x, atoms.T())
	rest.Mul(&codes, atoms)
	rest.Sub(x, &rest)
	n, _ := x.Dims()
	e := mat.Norm(&rest, 2)
	own := e * e / float64(n*d)
	if mat.Min(atoms) < 0 {
		t.Error("an atom is negative")
	}
	start := mat.DenseCopyOf(atoms)
	start.Apply(func(_, _ int, v float64) float64 { return max(v, 1e-9) }, start)
	_, further := projective(x, start, 20)
	r := random.Stream(1, "projective", 0)
	least := math.Inf(1)
	for range 3 {
		w := mat.NewDense(k, d, nil)
		w.Apply(func(int, int, float64) float64 { return r.Float64() / float64(d) }, w)
		_, error := projective(x, w, 200)
		least = min(least, error)
	}
	t.Logf("squared error %.6f; after 20 steps of projective NMF from there %.6f; projective NMF from three random starts, at best %.6f", own, further, least)
	if further < 0.99*own || own > 1.05*least {
		t.Errorf("squared error %v, projective NMF from there %v, from random starts %v", own, further, least)
	}
}

// The factors of a matrix are not identifiable: W A and Z A^-T give the same matrix. The ridge penalty leaves only rotations
// undetermined; the singular value decomposition determines these too.
func TestMatrixFactorisationIsNotIdentifiable(t *testing.T) {
	const d, k = 12, 3
	values := spectrum(4, 80, d, 1.5, 1.2, 0.9)
	x := wide(values, d)
	n, _ := x.Dims()
	m := fitted(t, &classical.MatrixFactorisation{Components: k, Solver: "als", RidgeRows: 2, RidgeColumns: 2, Iterations: 3000, Tolerance: 1e-13}, values, d)
	encoded, err := m.Encode(values)
	fatal.If(t, err)
	w, z := wide(encoded, k), mat.DenseCopyOf(wide(m.Atoms().Values, d).T())
	loss := func(w, z mat.Matrix) (squares, ridge float64) {
		var rest mat.Dense
		rest.Mul(w, z.T())
		rest.Sub(x, &rest)
		square := func(a mat.Matrix) float64 { return mat.Norm(a, 2) * mat.Norm(a, 2) }
		return square(&rest) / float64(n*d), 2 * (square(w) + square(z)) / float64(n*d)
	}
	squares, ridge := loss(w, z)
	if got := m.State().Numbers["objective"]; math.Abs(squares+ridge-got) > 1e-5*got {
		t.Errorf("objective %v, of the factors %v", got, squares+ridge)
	}
	moved := func(a *mat.Dense) (squares, ridge float64) {
		var inverse, wa, za mat.Dense
		fatal.If(t, inverse.Inverse(a))
		wa.Mul(w, a)
		za.Mul(z, inverse.T())
		return loss(&wa, &za)
	}
	scaledSquares, scaledRidge := moved(mat.NewDense(k, k, []float64{2, 0, 0, 0, 2, 0, 0, 0, 2}))
	c, s := math.Cos(0.7), math.Sin(0.7)
	turnedSquares, turnedRidge := moved(mat.NewDense(k, k, []float64{c, -s, 0, s, c, 0, 0, 0, 1}))
	t.Logf("squared error %.6f, ridge %.6f; scaled by 2: %.6f and %.6f; turned: %.6f and %.6f", squares, ridge, scaledSquares, scaledRidge, turnedSquares, turnedRidge)
	same := func(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }
	if !same(scaledSquares, squares) || !same(turnedSquares, squares) || !same(turnedRidge, ridge) || scaledRidge < 1.5*ridge {
		t.Error("the losses of scaled and turned factors are others than expected")
	}
	var ww, zz mat.Dense // with equal ridge penalties both factors have the same scale: W'W = Z'Z
	ww.Mul(w.T(), w)
	zz.Mul(z.T(), z)
	if !mat.EqualApprox(&ww, &zz, 1e-2*mat.Norm(&ww, 2)) {
		t.Errorf("W'W and Z'Z differ:\n%v\n%v", mat.Formatted(&ww), mat.Formatted(&zz))
	}
	normal := func(seed uint64) *mat.Dense { // U' of W Z' = U S V'
		method := &classical.MatrixFactorisation{Components: k, Solver: "als", RidgeRows: 2, RidgeColumns: 2, Iterations: 3000, Tolerance: 1e-13}
		model, err := method.New([]int{d}, seed)
		fatal.If(t, err)
		images, err := classical.NewMatrix(values, d)
		fatal.If(t, err)
		fatal.If(t, expect.Err(classical.Fit(context.Background(), model, images, nil)))
		codes, err := model.Encode(values)
		fatal.If(t, err)
		var product mat.Dense
		product.Mul(wide(codes, k), wide(model.Atoms().Values, d))
		_, v := basis(t, &product)
		return v
	}
	one, other := normal(1), normal(2)
	for i := range k {
		if cosine := math.Abs(mat.Dot(one.ColView(i), other.ColView(i))); cosine < 0.9999 {
			t.Errorf("singular vector %d of two starts: cosine %v", i, cosine)
		}
	}
}

// narrow returns the values of a matrix.
func narrow(m mat.Matrix) (values []float32) {
	rows, columns := m.Dims()
	for i := range rows {
		for j := range columns {
			values = append(values, float32(m.At(i, j)))
		}
	}
	return values
}

// The test draws the pictures of the page: principal axes, atoms of linear auto-encoders with their singular vectors, and the
// parts of a tied non-negative auto-encoder.
func TestAxesAndAtomsAreDrawn(t *testing.T) {
	if !*update {
		t.Skip("-update draws them")
	}
	const k = 4
	values, d := generated(t, overlapping())
	axes, _ := principal(t, values, d, k)
	plain := trained(t, values, d, linear(k), 4500, 0.02)
	decayed := trained(t, values, d, linear(k, config.Loss{Loss: &losses.WeightDecay{}, On: "*.weight", Weight: &losses.Constant{Value: 2e-4}}), 9000, 0.02)
	_, found := basis(t, decayed)
	row := func(caption string, m mat.Matrix) figures.ImageRow {
		return figures.ImageRow{Caption: caption, Shape: []int{12, 12}, Images: narrow(m), Columns: 6, Tone: figures.Signed}
	}
	figure, err := figures.ImageRows(row("principal axes", axes), row("atoms of a linear auto-encoder", plain),
		row("atoms with weight decay", decayed), row("singular vectors of the decoder with weight decay", found.T()))
	draw(t, "equivalences-axes.png", figure, err)
	tied := trained(t, values, d, config.Model{Encoder: []config.Layer{{Layer: &layers.Dense{Units: 6}}}}, 1500, 0.01,
		`encoder=[{kind="dense",units=6,bias=false}]`, `decoder=[{kind="tied",bias=false}]`, `constraint=[{kind="nonneg",on="encoder.*.weight"}]`)
	r := random.Stream(1, "projective", 0)
	start := mat.NewDense(6, d, nil)
	start.Apply(func(int, int, float64) float64 { return r.Float64() / float64(d) }, start)
	nmf, _ := projective(wide(values, d), start, 2000)
	figure, err = figures.ImageRows(row("images", wide(values[:6*d], d)), row("atoms of the tied non-negative auto-encoder", tied), row("atoms of projective NMF", nmf))
	draw(t, "equivalences-projective.png", figure, err)
}

// draw writes a picture of docs/equivalences.md if the flag -update is set.
func draw(t *testing.T, name string, figure *figures.Figure, err error) {
	t.Helper()
	if err == nil && *update {
		err = figure.Save(filepath.Join("img", name))
	}
	fatal.If(t, err)
}

// rated returns a fifth of the entries of an n x m matrix, which consists of planted factors of length 3, biases and noise
// 0.5.
func rated(t *testing.T, n, m int) *data.Images {
	t.Helper()
	r := random.Stream(6, "rated", 0)
	const k = 3
	w, z := make([]float64, n*(k+1)), make([]float64, m*(k+1))
	for _, values := range [][]float64{w, z} {
		for i := range values {
			values[i] = r.NormFloat64() / math.Sqrt(2)
		}
	}
	starts, columns, values := []int{0}, []int32(nil), []float32(nil)
	for i := range n {
		for j := range m {
			if r.Float64() >= 0.2 {
				continue
			}
			v := 3 + w[i*4+k] + z[j*4+k] + 0.5*r.NormFloat64()
			for c := range k {
				v += w[i*4+c] * z[j*4+c]
			}
			columns, values = append(columns, int32(j)), append(values, float32(v))
		}
		starts = append(starts, len(columns))
	}
	images, err := data.NewEntries(starts, columns, values, m)
	fatal.If(t, err)
	return images
}

// With more components the error on the fitted entries decreases. The error on held-out entries is smallest at the planted
// number of components.
func TestHeldOutEntriesChooseTheNumberOfComponents(t *testing.T) {
	ranks, err := classical.Rank(context.Background(), &classical.MatrixFactorisation{Solver: "als", Biases: true, RidgeRows: 0.02, RidgeColumns: 0.02,
		WeightedRidge: true, Iterations: 40, Tolerance: 1e-4}, rated(t, 200, 100), []int{1, 2, 3, 4, 6, 8}, 4, 1, nil)
	fatal.If(t, err)
	line := figures.SweptLine{}
	best := 0
	for i, r := range ranks.Rows {
		t.Logf("%d components: RMSE %.4f of held-out entries, %.4f of fitted entries", r.Components, *r.Values[0], *r.Values[1])
		if i > 0 && *r.Values[1] >= *ranks.Rows[i-1].Values[1] {
			t.Errorf("%d components fit worse than %d", r.Components, ranks.Rows[i-1].Components)
		}
		if *r.Values[0] < *ranks.Rows[best].Values[0] {
			best = i
		}
		held, fitted := metrics.Number(*r.Values[0]), metrics.Number(*r.Values[1])
		fitted.Name, held.Name = "RMSE of fitted entries", "RMSE of held-out entries"
		line.Points = append(line.Points, figures.SweptPoint{X: float64(r.Components), Mean: metrics.Values{fitted, held}})
	}
	if ranks.Rows[best].Components != 3 || *ranks.Rows[best].Values[0] < 0.5 {
		t.Errorf("the least held-out error is that of %d components, %v; want that of the 3 planted ones, and more than the noise of 0.5", ranks.Rows[best].Components, *ranks.Rows[best].Values[0])
	}
	figure, err := figures.Swept("components", []string{"RMSE of fitted entries", "RMSE of held-out entries"}, []figures.SweptLine{line})
	draw(t, "equivalences-components.png", figure, err)
}
