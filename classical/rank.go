package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/metrics"
)

// Ranking contains what was measured for numbers of components.
type Ranking struct {
	Measures []RankMeasure // the first has a standard error
	Rows     []Ranked
}

// RankMeasure describes one value of each number of components.
type RankMeasure struct {
	Key    string // in JSON
	Name   string // in tables
	Choice RankChoice
	Mark   string // name of the choice, such as "least bic"
}

// RankChoice says which number of components a measure suggests.
type RankChoice int

// The choices.
const (
	NoChoice RankChoice = iota
	Simplest            // the number with the lowest value, and the fewest components within one standard error of it
	Lowest
	Highest
	Bend // the [Elbow] of the values
)

// Ranked contains the values of one number of components.
type Ranked struct {
	Components int
	Deviation  float64    // standard error of the first value
	Values     []*float64 // one for each measure; nil where it does not apply

	Parts   []StablePart  // of a consensus, from the most to the least stable
	LeftOut float64       // share of the atoms of a consensus without near neighbours, which are not part of it
	Atoms   metrics.Atoms // the parts, of norm 1
}

// Rank compares numbers of components of a method by cross-validation; all other settings are those of method. A PCA and an NMF are compared by
// bi-cross-validation, densities by the likelihood of held-out images, k-means by held-out errors and silhouettes, and a matrix_factorisation by
// held-out entries. report, which may be nil, is called after each of all steps.
func Rank(ctx context.Context, method Method, images Images, components []int, folds int, seed uint64, report func(done, all int)) (*Ranking, error) {
	if ctx == nil || method == nil || images == nil {
		return nil, errors.New("classical: rank: no method, no samples or no context")
	}
	if report == nil {
		report = func(int, int) {}
	}
	v := &validation{method: method, images: images, components: components, folds: folds, seed: seed, n: images.Len(), p: images.Pixels(), report: report}
	switch m := method.(type) {
	case *PCA, *NMF:
		return v.byBlocks(ctx)
	case *KMeans:
		return v.clusters(ctx)
	case *GMM, *BMM, *FactorAnalysis:
		return v.densities(ctx)
	case *MatrixFactorisation:
		return v.byEntries(ctx, m)
	}
	return nil, part.KeyError{Key: "kind", Problem: `numbers of components are compared of kind = "pca", "nmf", "kmeans", "gmm", "bmm", "factor_analysis" and "matrix_factorisation"`}
}

// MostRanked returns the largest number of components that [Rank] compares.
func MostRanked(method Method, images Images, folds int) int {
	held := func(n int) int { return n - (n+folds-1)/folds }
	switch method.(type) {
	case *PCA, *NMF, *MatrixFactorisation:
		return min(held(images.Len()), held(images.Pixels()))
	}
	return held(images.Len())
}

// validation contains the inputs of a comparison of numbers of components.
type validation struct {
	method     Method
	images     Images
	components []int
	folds      int
	seed       uint64
	n, p       int
	report     func(done, all int)

	x       []float32    // values of the images
	entries SparseImages // in place of x
}

// byBlocks compares numbers of components by bi-cross-validation: images and pixels are each divided
// into folds at random, and every block A of one fold of images and one fold of pixels is predicted from the others,
//
//	X = [A B; C D],   D = H W fitted,   A predicted by H(B) W(C),
//
// where H(B) are the codes of B's images for the atoms W, and W(C) the least-squares atoms of C's pixels for the codes H,
// which are non-negative for an NMF. For a PCA this is B D^+ C with the truncated pseudo-inverse, after pixel means of the
// fitted images are subtracted. The error falls while additional components describe
// structure that images have in common, and rises when they describe noise. With two folds the held-out blocks are largest.
//
// Source: A. B. Owen, P. O. Perry, Bi-cross-validation of the SVD and the nonnegative matrix factorization, Annals of Applied
// Statistics 3(2), 2009.
func (v *validation) byBlocks(ctx context.Context) (*Ranking, error) {
	if err := complete(v.images); err != nil {
		return nil, err
	}
	if err := v.check(); err != nil {
		return nil, err
	}
	if of, ok := v.images.(SparseImages); ok && of.Zeros() {
		v.entries = sparseOf(of).images
	} else {
		v.x = load(v.images)
		if err := acceptValues(v.x, v.p, true, false); err != nil {
			return nil, err
		}
	}
	folds := v.folds
	rows, columns := deal(v.n, folds, v.seed, "rank/images"), deal(v.p, folds, v.seed, "rank/pixels")
	blocks := make([][]float64, len(v.components)) // mean squared error, per number of components and block
	squares := make([]float64, len(v.components))
	for b := range folds * folds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		errs, size, err := v.block(ctx, rows, columns, b/folds, b%folds)
		if err != nil {
			return nil, err
		}
		for i, e := range errs {
			squares[i] += e
			blocks[i] = append(blocks[i], e/float64(size))
		}
		v.report(b+1, folds*folds)
	}
	r := &Ranking{Measures: []RankMeasure{{Key: "mse", Name: "held-out mse", Choice: Simplest}}}
	for i, k := range v.components {
		r.Add(k, standardError(blocks[i]), squares[i]/float64(v.n)/float64(v.p))
	}
	return r, nil
}

// Add adds the values of a number of components, and returns them.
func (r *Ranking) Add(components int, deviation float64, values ...float64) *Ranked {
	one := Ranked{Components: components, Deviation: deviation}
	for _, value := range values {
		one.Values = append(one.Values, &value)
	}
	r.Rows = append(r.Rows, one)
	return &r.Rows[len(r.Rows)-1]
}

func standardError(values []float64) float64 {
	n := float64(len(values))
	mean, squares := lists.Sum(values)/n, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// fitTo fits a method, with k components instead of its own number, to images.
func fitTo(ctx context.Context, method Method, k int, seed uint64, images Images) (Model, error) {
	sized := reflect.New(reflect.TypeOf(method).Elem())
	sized.Elem().Set(reflect.ValueOf(method).Elem())
	sized.Elem().FieldByName("Components").SetInt(int64(k))
	m, err := sized.Interface().(Method).New([]int{images.Pixels()}, seed)
	if err == nil {
		_, err = Fit(ctx, m, images, nil)
	}
	return m, err
}

func (v *validation) check() error {
	if most := min(v.n, v.p); v.folds < 2 || v.folds > most {
		return fmt.Errorf("folds: got %d, want 2 to %d, the lesser of samples and values", v.folds, most)
	}
	most := MostRanked(v.method, v.images, v.folds)
	if len(v.components) == 0 {
		return fmt.Errorf("components: got none, want numbers from 1 to %d", most)
	}
	for _, k := range v.components {
		if k < 1 || k > most {
			return fmt.Errorf("components: got %d, want 1 to %d, the lesser of the samples and values that are fitted at a time", k, most)
		}
	}
	return nil
}

// deal assigns each of n items to a fold at random.
func deal(n, folds int, seed uint64, stream string) []int {
	fold := make([]int, n)
	for i, at := range random.Stream(seed, stream, 0).Perm(n) {
		fold[at] = i % folds
	}
	return fold
}

// block returns the summed squared errors of one held-out block for each number of components, and its size.
func (v *validation) block(ctx context.Context, rows, columns []int, row, column int) (errs []float64, size int, err error) {
	heldRows, fittedRows := parted(rows, row)
	heldPixels, fittedPixels := parted(columns, column)
	a, b, c := v.cut(heldRows, heldPixels), v.cut(heldRows, fittedPixels), v.cut(fittedRows, heldPixels)
	d := v.fitted(fittedRows, fittedPixels)
	errs = make([]float64, len(v.components))
	predict := v.predictNMF
	if _, ok := v.method.(*PCA); ok {
		if predict, err = v.predictPCA(ctx, d); err != nil {
			return nil, 0, err
		}
	}
	for i, k := range v.components {
		predicted, err := predict(ctx, b, c, d, k)
		if err != nil {
			return nil, 0, err
		}
		for j, y := range predicted {
			e := float64(y) - float64(a[j])
			errs[i] += e * e
		}
	}
	return errs, len(a), nil
}

// parted returns the items of a fold, and all others.
func parted(folds []int, fold int) (in, out []int) {
	for i, f := range folds {
		if f == fold {
			in = append(in, i)
		} else {
			out = append(out, i)
		}
	}
	return in, out
}

// cut returns the values of some rows and columns.
func (v *validation) cut(rows, columns []int) []float32 {
	values, row := make([]float32, 0, len(rows)*len(columns)), make([]float32, v.p)
	for _, i := range rows {
		if v.entries != nil {
			v.entries.Batch(row, []int{i})
		} else {
			row = v.x[i*v.p : (i+1)*v.p]
		}
		for _, j := range columns {
			values = append(values, row[j])
		}
	}
	return values
}

// fitted returns some rows and columns as images, sparse ones of sparse images.
func (v *validation) fitted(rows, columns []int) Images {
	if v.entries == nil {
		return Matrix{v.cut(rows, columns), len(columns)}
	}
	place := make([]int32, v.p) // of a column, counted from 1
	for j, column := range columns {
		place[column] = int32(j) + 1
	}
	part := &sparseBlock{width: len(columns), columns: make([][]int32, len(rows)), values: make([][]float32, len(rows))}
	for k, i := range rows {
		at, values := v.entries.Entries(i)
		for e, j := range at {
			if place[j] > 0 {
				part.columns[k], part.values[k] = append(part.columns[k], place[j]-1), append(part.values[k], values[e])
			}
		}
	}
	return part
}

// sparseBlock is a block of sparse images.
type sparseBlock struct {
	width   int
	columns [][]int32
	values  [][]float32
}

func (b *sparseBlock) Len() int                           { return len(b.values) }
func (b *sparseBlock) Pixels() int                        { return b.width }
func (b *sparseBlock) Zeros() bool                        { return true }
func (b *sparseBlock) Entries(i int) ([]int32, []float32) { return b.columns[i], b.values[i] }

func (b *sparseBlock) Batch(dst []float32, indices []int) {
	clear(dst[:len(indices)*b.width])
	for k, i := range indices {
		for e, j := range b.columns[i] {
			dst[k*b.width+int(j)] = b.values[i][e]
		}
	}
}

// encodeAll returns the codes of all images. Of sparse ones it holds the values of a part at a time.
func encodeAll(m Model, images Images) (codes []float32, err error) {
	const most = 1 << 24 // values of a part
	if x, ok := images.(Matrix); ok {
		return m.Encode(x.values)
	}
	n, p := images.Len(), images.Pixels()
	rows := max(1, most/p)
	for from := 0; from < n; from += rows {
		to := min(n, from+rows)
		x := make([]float32, (to-from)*p)
		images.Batch(x, span(nil, from, to))
		part, err := m.Encode(x)
		if err != nil {
			return nil, err
		}
		codes = append(codes, part...)
	}
	return codes, nil
}

// predictor predicts A with k components.
type predictor func(ctx context.Context, b, c []float32, d Images, k int) ([]float32, error)

// predictNMF factorises the block D, with k components.
func (v *validation) predictNMF(ctx context.Context, b, c []float32, d Images, k int) ([]float32, error) {
	m, err := fitTo(ctx, v.method, k, v.seed, d)
	if err != nil {
		return nil, err
	}
	left, err := m.Encode(b)
	if err != nil {
		return nil, err
	}
	codes, err := encodeAll(m, d)
	if err != nil {
		return nil, err
	}
	fitted := d.Len()
	held := len(c) / fitted // pixels
	byPixel := encodeSquared(transpose(c, fitted, held), transpose(codes, fitted, k), k, fitted, encodePrecision)
	return decode(left, transpose(byPixel, held, k), nil, k, held)
}

// predictPCA fits D once, for the largest number of components: the first components are those of a smaller number.
func (v *validation) predictPCA(ctx context.Context, d Images) (predictor, error) {
	most := slices.Max(v.components)
	model, err := fitTo(ctx, &PCA{}, most, v.seed, d)
	if err != nil {
		return nil, err
	}
	scores, err := encodeAll(model, d)
	if err != nil {
		return nil, err
	}
	fitted := d.Len()
	return func(_ context.Context, b, c []float32, _ Images, k int) ([]float32, error) {
		left, err := model.Encode(b)
		if err != nil {
			return nil, err
		}
		held := len(c) / fitted
		mean := fit.ColumnMeans(c, fitted, held)
		loadings := make([]float32, most*held)
		multiply(true, false, most, held, fitted, scores, fit.SubtractRow(c, mean), loadings)
		byAtom := transpose(scores, fitted, most)
		var largest float64
		for j := range most { // the scores of different components are orthogonal
			row := loadings[j*held : (j+1)*held]
			squares := vectors.Dot(byAtom[j*fitted:(j+1)*fitted], byAtom[j*fitted:(j+1)*fitted])
			if largest = max(largest, squares); squares > 1e-12*largest && j < k { // the scores beyond the rank of D are rounding
				kernel.Float32().DivScalar(row, row, float32(squares))
			} else {
				clear(row)
			}
		}
		return decode(left, loadings, mean, most, held)
	}, nil
}
