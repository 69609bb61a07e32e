package classical

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// byEntries compares numbers of components of a matrix_factorisation, which must not be for implicit feedback. The observed entries of a
// matrix are divided into folds at random, and the entries of each fold are predicted by a fit to the other folds. The error on fitted entries
// falls with every component. The error on held-out entries falls while components describe structure that rows and columns
// have in common, and rises when they describe noise.
func (v *validation) byEntries(ctx context.Context, settings *MatrixFactorisation) (*Ranking, error) {
	switch {
	case settings.Confidence > 0:
		return nil, part.KeyErrorf("confidence", "got %g, but implicit feedback has no values to predict: want 0", settings.Confidence)
	case len(v.components) == 0 || slices.Min(v.components) < 1:
		return nil, part.KeyErrorf("components", "got %v, want numbers > 0", v.components)
	case v.folds < 2:
		return nil, fmt.Errorf("folds: got %d, want at least 2", v.folds)
	}
	d := dealt{x: observed(holed(v.images)), folds: v.folds, seed: v.seed, pixels: v.p}
	r := &Ranking{Measures: []RankMeasure{{Key: "rmse", Name: "held-out rmse", Choice: Simplest}, {Key: "rmse_fitted", Name: "rmse of fitted entries"}}}
	done := 0
	for _, k := range v.components {
		var errs []float64
		squares, count, fitted, of := 0.0, 0, 0.0, 0
		for fold := range v.folds {
			model, err := fitTo(ctx, v.method, k, v.seed, d.without(fold))
			if err != nil {
				return nil, err
			}
			m := model.(*matrixFactorisation)
			held, n := d.squares(m, fold)
			squares, count = squares+held, count+n
			errs = append(errs, math.Sqrt(held/float64(max(1, n))))
			fitted, of = fitted+m.squares(), of+m.total
			done++
			v.report(done, v.folds*len(v.components))
		}
		r.Add(k, standardError(errs), math.Sqrt(squares/float64(max(1, count))), math.Sqrt(fitted/float64(of)))
	}
	return r, nil
}

// dealt contains the entries of a matrix with their assignment to folds.
type dealt struct {
	x      observations
	folds  int
	seed   uint64
	pixels int
}

func (d dealt) folded(row, n int) []int {
	r := random.Stream(d.seed, "rank/entries", uint64(row))
	return lists.Of(n, func(i int) int { return r.IntN(d.folds) })
}

// without returns the entries of all folds except one.
func (d dealt) without(fold int) gatheredImages {
	g := &gathered{starts: make([]int, d.x.Len()+1)}
	for i := range d.x.Len() {
		columns, values := d.x.Entries(i)
		for e, f := range d.folded(i, len(columns)) {
			if f != fold {
				g.columns, g.values = append(g.columns, columns[e]), append(g.values, values[e])
			}
		}
		g.starts[i+1] = len(g.columns)
	}
	return gatheredImages{g, d.pixels}
}

// squares returns the sum of the squared errors of the entries of a fold, and the number of these entries.
func (d dealt) squares(m *matrixFactorisation, fold int) (sum float64, count int) {
	for i := range d.x.Len() {
		columns, values := d.x.Entries(i)
		for e, f := range d.folded(i, len(columns)) {
			if f == fold {
				v := float64(values[e]) - m.predict(m.rows[i*m.units:(i+1)*m.units], int(columns[e]))
				sum += v * v
				count++
			}
		}
	}
	return sum, count
}

// gatheredImages provides the entries of a matrix as images.
type gatheredImages struct {
	*gathered
	pixels int
}

// Sparse reports true: Entries returns the observed entries of a row.
func (g gatheredImages) Sparse() bool { return true }

func (g gatheredImages) Pixels() int { return g.pixels }

// Batch implements [Images], with NaN for entries that are not observed.
func (g gatheredImages) Batch(dst []float32, indices []int) {
	nan := float32(math.NaN())
	for k, i := range indices {
		row := dst[k*g.pixels : (k+1)*g.pixels]
		for j := range row {
			row[j] = nan
		}
		columns, values := g.Entries(i)
		for e, j := range columns {
			row[j] = values[e]
		}
	}
}
