package tessera

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tessera/classical"
	"tessera/data"
	"tessera/losses"
	"tessera/metrics"
)

// ErrNoOutput is the error for a model that does not reconstruct images.
var ErrNoOutput = errors.New("the model has no decoder: it cannot complete anything")

// A model that was trained on complete samples fills missing entries repeatedly: until no entry changes by more than
// completeTolerance of the largest value, at most completePasses times.
const (
	completeTolerance = 1e-5
	completePasses    = 500
)

// Complete returns samples with every missing entry, NaN, replaced by the entry of the model's reconstruction, before scaling.
// Other values are unchanged. columns contains the images and the columns from which the output is computed, by name, see
// [Run.Columns].
//
// pca, nmf and sparse_nmf encode the observed entries only ([Run.TakesHoles]), unless their samples are whitened. For any other model whose data set has missing
// or hidden entries, missing entries are 0 in the input, as in the training, and the output replaces them. All other models
// were trained on complete samples: a missing entry starts as the mean of the same value in the other samples, and the output
// replaces it repeatedly until it no longer changes (at most 500 times).
func (r *Run) Complete(columns map[string][]float32) ([]float32, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if !slices.Contains(r.Values(), losses.Output) {
		return nil, fmt.Errorf("run %s: %w", r.Path, ErrNoOutput)
	}
	images := columns[losses.Images]
	filled := slices.Clone(images)
	given := maps.Clone(columns)
	passes := 1
	if !r.Model.Holed() && !r.TakesHoles() {
		passes = completePasses
		r.begin(filled)
		given[losses.Images] = filled
	}
	for range passes {
		values, err := r.ValueOf(losses.Output, given)
		if err != nil {
			return nil, err
		}
		change, largest := 0.0, 0.0
		for i, v := range images {
			if v != v {
				change = max(change, math.Abs(float64(values[i])-float64(filled[i])))
				filled[i] = values[i]
			}
			largest = max(largest, math.Abs(float64(filled[i])))
		}
		if change <= completeTolerance*largest {
			break
		}
	}
	return filled, nil
}

// begin sets missing values to the mean of the same value in the other samples, or to the middle of the range of the fitted
// samples.
func (r *Run) begin(samples []float32) {
	width := 1
	for _, d := range r.Shape() {
		width *= d
	}
	for k := range width {
		sum, count := 0.0, 0
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v == v {
				sum += float64(v)
				count++
			}
		}
		mean := (r.span[0] + r.span[1]) / 2
		if count > 0 {
			mean = float32(sum / float64(count))
		}
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v != v {
				samples[i] = mean
			}
		}
	}
}

// matrixNames contains the names of the rows and columns of a sparse matrix; nil if the names are numbers.
type matrixNames struct{ rows, columns []string }

// ErrNoMatrix is the error for a model that does not predict entries of a matrix.
var ErrNoMatrix = errors.New(`it predicts no entries of a matrix: want kind = "matrix_factorisation"`)

// PredictsEntries reports whether the model predicts entries of a matrix by row and column: see [Run.PredictEntries].
func (r *Run) PredictsEntries() bool {
	if r == nil {
		return false
	}
	_, ok := r.coder.(classical.MatrixPredictor)
	return ok
}

// RowNames returns the names of the rows to which a model of a matrix was fitted, in the order of their codes; nil for other
// models.
func (r *Run) RowNames() []string {
	if !r.PredictsEntries() {
		return nil
	}
	return named(r.matrix.rows, r.coder.(classical.MatrixPredictor).Rows())
}

// ColumnNames returns the names of the columns of the sparse matrix to which the model was fitted, nil for other samples.
func (r *Run) ColumnNames() []string {
	if _, sparse := r.source().(*data.Triples); !sparse && !r.PredictsEntries() {
		return nil
	}
	return named(r.matrix.columns, r.Shape()[0])
}

// PredictEntries returns the predictions of a matrix_factorisation for pairs of a row and a column, by name. further, which
// may be nil, contains entries of additional rows ([data.ReadTriples]): their codes are computed from these entries without
// changing the model. An additional row replaces a fitted row of the same name. It returns a [*data.Error] for a row that is
// neither fitted nor in further, and for an unknown column.
func (r *Run) PredictEntries(pairs *data.Pairs, further *data.Images) ([]float64, error) {
	if pairs == nil || len(pairs.Rows) != len(pairs.Columns) {
		return nil, errors.New("tessera: predict: want as many rows as columns")
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if !r.PredictsEntries() {
		return nil, fmt.Errorf("%s: %w", r.Path, ErrNoMatrix)
	}
	values := make([]float64, len(pairs.Rows))
	err := r.computing(func(c metrics.Coder) error {
		m := c.(classical.MatrixPredictor)
		rows, columns := indexed(r.RowNames()), indexed(r.ColumnNames())
		codes, err := foldIn(m, further, columns)
		if err != nil {
			return err
		}
		for i, row := range pairs.Rows {
			j, known := columns[pairs.Columns[i]]
			if !known {
				return unknown(pairs, i, "column", pairs.Columns[i], "")
			}
			if code := codes[row]; code != nil {
				values[i], err = m.PredictCode(code, j)
			} else if at, fitted := rows[row]; fitted {
				values[i], err = m.PredictEntry(at, j)
			} else {
				return unknown(pairs, i, "row", row, "give its observed entries (--given)")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return values, err
}

// unknown returns the error for a pair with an unknown row or column.
func unknown(pairs *data.Pairs, i int, what, name, hint string) error {
	place := fmt.Sprintf("pair %d", i)
	if len(pairs.Lines) > 0 {
		place = fmt.Sprintf("line %d", pairs.Lines[i])
	}
	return &data.Error{Problem: fmt.Sprintf("%s: the model was not fitted to a %s %.60q", place, what, name), Hint: hint}
}

// foldIn computes the codes of additional rows, by name.
func foldIn(m classical.MatrixPredictor, further *data.Images, columns map[string]int) (map[string][]float64, error) {
	if further == nil {
		return nil, nil
	}
	if !further.Sparse() {
		return nil, errors.New("tessera: predict: the further entries are not those of a sparse matrix")
	}
	rowNames, columnNames := named(further.RowNames(), further.Len()), named(further.ValueNames(), further.Pixels())
	codes := make(map[string][]float64, further.Len())
	for i := range further.Len() {
		theirs, values := further.Entries(i)
		own := make([]int32, len(theirs))
		for k, j := range theirs {
			at, known := columns[columnNames[j]]
			if !known {
				return nil, &data.Error{Problem: fmt.Sprintf("further entries: row %.60q: the model was not fitted to a column %.60q", rowNames[i], columnNames[j])}
			}
			own[k] = int32(at)
		}
		code, err := m.FoldIn(own, values)
		if err != nil {
			return nil, fmt.Errorf("row %.60q: %w", rowNames[i], err)
		}
		codes[rowNames[i]] = code
	}
	return codes, nil
}

// indexed returns the index of each name.
func indexed(names []string) map[string]int {
	index := make(map[string]int, len(names))
	for i, name := range names {
		index[name] = i
	}
	return index
}

// source returns the data set of the model, nil if there is none.
func (r *Run) source() data.Source {
	if r == nil || r.Model == nil {
		return nil
	}
	return r.Model.Dataset.Source
}
