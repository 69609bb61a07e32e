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
)

// RankError is the error of predicting held-out entries of the images with a number of components.
type RankError struct {
	Components int     `json:"components"`
	MSE        float64 `json:"mse"`            // mean squared error of the held-out pixels
	Deviation  float64 `json:"standard_error"` // standard error of this mean over the blocks
}

// BiCrossValidate compares numbers of components of a PCA or an NMF by bi-cross-validation: images and pixels are each divided
// into folds at random, and every block A of one fold of images and one fold of pixels is predicted from the others,
//
//	X = [A B; C D],   D = H W fitted,   A predicted by H(B) W(C),
//
// where H(B) are the codes of B's images for the atoms W, and W(C) the least-squares atoms of C's pixels for the codes H,
// which are non-negative for an NMF. For a PCA this is B D^+ C with the truncated pseudo-inverse, after pixel means of the
// fitted images are subtracted. All other settings are those of method. The error falls while additional components describe
// structure that images have in common, and rises when they describe noise: the number with the smallest error is the best
// choice. With two folds the held-out blocks are largest. report, which may be nil, is called after each of the folds x folds
// blocks.
//
// Source: A. B. Owen, P. O. Perry, Bi-cross-validation of the SVD and the nonnegative matrix factorization, Annals of Applied
// Statistics 3(2), 2009.
func BiCrossValidate(ctx context.Context, method Method, images Images, components []int, folds int, seed uint64,
	report func(done int)) ([]RankError, error) {
	if ctx == nil || method == nil || images == nil {
		return nil, errors.New("classical: bi-cross-validation: no method, no images or no context")
	}
	n, p := images.Len(), images.Pixels()
	if err := complete(images); err != nil {
		return nil, err
	}
	v := validation{method: method, components: components, seed: seed, n: n, p: p}
	if err := v.check(folds); err != nil {
		return nil, err
	}
	v.x = load(images)
	if err := acceptValues(v.x, p, true, false); err != nil {
		return nil, err
	}
	rows, columns := deal(n, folds, seed, "rank/images"), deal(p, folds, seed, "rank/pixels")
	blocks := make([][]float64, len(components)) // mean squared error, per number of components and block
	squares := make([]float64, len(components))
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
		if report != nil {
			report(b + 1)
		}
	}
	results := make([]RankError, len(components))
	for i, k := range components {
		results[i] = RankError{k, squares[i] / float64(n) / float64(p), standardError(blocks[i])}
	}
	return results, nil
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

// validation contains the inputs that all blocks share.
type validation struct {
	method     Method
	components []int
	seed       uint64
	n, p       int
	x          []float32
}

func (v *validation) check(folds int) error {
	switch v.method.(type) {
	case *PCA, *NMF:
	default:
		return part.KeyError{Key: "kind", Problem: `bi-cross-validation compares factorisations by least squares: want kind = "pca" or "nmf"`}
	}
	if most := min(v.n, v.p); folds < 2 || folds > most {
		return fmt.Errorf("folds: got %d, want 2 to %d, the lesser of images and pixels", folds, most)
	}
	most := min(v.n-(v.n+folds-1)/folds, v.p-(v.p+folds-1)/folds)
	if len(v.components) == 0 {
		return fmt.Errorf("components: got none, want numbers from 1 to %d", most)
	}
	for _, k := range v.components {
		if k < 1 || k > most {
			return fmt.Errorf("components: got %d, want 1 to %d, the lesser of the images and pixels that are fitted at a time", k, most)
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
	cut := func(held, heldPixels bool) []float32 {
		var values []float32
		for i := range v.n {
			for j := range v.p {
				if (rows[i] == row) == held && (columns[j] == column) == heldPixels {
					values = append(values, v.x[i*v.p+j])
				}
			}
		}
		return values
	}
	a, b, c, d := cut(true, true), cut(true, false), cut(false, true), cut(false, false)
	pixels := v.p - count(columns, column)
	errs = make([]float64, len(v.components))
	predict := v.predictNMF
	if _, ok := v.method.(*PCA); ok {
		if predict, err = v.predictPCA(ctx, d, pixels); err != nil {
			return nil, 0, err
		}
	}
	for i, k := range v.components {
		predicted, err := predict(ctx, b, c, d, k, pixels)
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

func count(values []int, value int) (times int) {
	for _, v := range values {
		if v == value {
			times++
		}
	}
	return times
}

// predictor predicts A with k components.
type predictor func(ctx context.Context, b, c, d []float32, k, pixels int) ([]float32, error)

// predictNMF factorises the block D, with k components.
func (v *validation) predictNMF(ctx context.Context, b, c, d []float32, k, pixels int) ([]float32, error) {
	m, err := fitTo(ctx, v.method, k, v.seed, Matrix{d, pixels})
	if err != nil {
		return nil, err
	}
	left, err := m.Encode(b)
	if err != nil {
		return nil, err
	}
	codes, err := m.Encode(d)
	if err != nil {
		return nil, err
	}
	fitted := len(d) / pixels
	held := len(c) / fitted // pixels
	byPixel := encodeSquared(transpose(c, fitted, held), transpose(codes, fitted, k), k, fitted, encodePrecision)
	return decode(left, transpose(byPixel, held, k), nil, k, held)
}

// predictPCA fits D once, for the largest number of components: the first components are those of a smaller number.
func (v *validation) predictPCA(ctx context.Context, d []float32, pixels int) (predictor, error) {
	most := slices.Max(v.components)
	model, err := fitTo(ctx, &PCA{}, most, v.seed, Matrix{d, pixels})
	if err != nil {
		return nil, err
	}
	scores, err := model.Encode(d)
	if err != nil {
		return nil, err
	}
	fitted := len(d) / pixels
	return func(_ context.Context, b, c, _ []float32, k, _ int) ([]float32, error) {
		left, err := model.Encode(b)
		if err != nil {
			return nil, err
		}
		held := len(c) / fitted
		mean := fit.ColumnMeans(c, fitted, held)
		loadings := make([]float32, most*held)
		multiply(true, false, most, held, fitted, scores, fit.SubtractRow(c, mean), loadings)
		byAtom := transpose(scores, fitted, most)
		for j := range most { // the scores of different components are orthogonal
			row := loadings[j*held : (j+1)*held]
			if squares := vectors.Dot(byAtom[j*fitted:(j+1)*fitted], byAtom[j*fitted:(j+1)*fitted]); squares > 0 && j < k {
				kernel.Float32().DivScalar(row, row, float32(squares))
			} else {
				clear(row)
			}
		}
		return decode(left, loadings, mean, most, held)
	}, nil
}
