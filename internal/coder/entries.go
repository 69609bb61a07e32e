package coder

import (
	"errors"
	"fmt"

	"tessera/classical"
	"tessera/data"
	"tessera/internal/tokens"
	"tessera/metrics"
)

// ErrNoMatrix is the error for a model that does not predict entries of a matrix.
var ErrNoMatrix = errors.New(`it predicts no entries of a matrix: want kind = "matrix_factorisation"`)

// PredictsEntries reports whether the model predicts entries of a matrix by row and column: see [Coder.PredictEntries].
func (c *Coder) PredictsEntries() bool {
	_, ok := c.inner.(classical.MatrixPredictor)
	return ok
}

// RowNames returns the names of the rows to which a model of a matrix was fitted, in the order of their codes; nil for other
// models.
func (c *Coder) RowNames() []string {
	if !c.PredictsEntries() {
		return nil
	}
	return named(c.trained.RowNames, c.inner.(classical.MatrixPredictor).Rows())
}

// Tokens returns the vocabulary of the texts to which the model was fitted, nil for other samples.
func (c *Coder) Tokens() *tokens.Tokenizer { return c.trained.Tokens }

// ColumnNames returns the names of the columns of the sparse matrix to which the model was fitted, nil for other samples.
func (c *Coder) ColumnNames() []string {
	if c.trained.ColumnNames == nil && data.SparseOf(c.trained.Spec.Dataset.Source) == nil && !c.PredictsEntries() {
		return nil
	}
	return named(c.trained.ColumnNames, c.Shape()[0])
}

// PredictEntries returns the predictions of a matrix_factorisation for pairs of a row and a column, by name. further, which
// may be nil, contains entries of additional rows ([data.ReadRows] with the columns of the model): their codes are computed from these entries without
// changing the model. An additional row replaces a fitted row of the same name. It returns a [*data.Error] for a row that is
// neither fitted nor in further, and for an unknown column.
func (c *Coder) PredictEntries(pairs *data.Pairs, further *data.Images) ([]float64, error) {
	if pairs == nil || len(pairs.Rows) != len(pairs.Columns) {
		return nil, errors.New("tessera: predict: want as many rows as columns")
	}
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if !c.PredictsEntries() {
		return nil, fmt.Errorf("%s: %w", c.path, ErrNoMatrix)
	}
	values := make([]float64, len(pairs.Rows))
	err := c.Do(func(inner metrics.Coder) error {
		m := inner.(classical.MatrixPredictor)
		rows, columns := indexed(c.RowNames()), indexed(c.ColumnNames())
		codes, err := foldIn(m, further)
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
				return unknown(pairs, i, "row", row, "give its observed entries (the option given)")
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
func foldIn(m classical.MatrixPredictor, further *data.Images) (map[string][]float64, error) {
	if further == nil {
		return nil, nil
	}
	if !further.Sparse() {
		return nil, errors.New("tessera: predict: the further entries are not those of a sparse matrix")
	}
	names := named(further.RowNames(), further.Len())
	codes := make(map[string][]float64, further.Len())
	for i := range further.Len() {
		columns, values := further.Entries(i)
		code, err := m.FoldIn(columns, values)
		if err != nil {
			return nil, fmt.Errorf("row %.60q: %w", names[i], err)
		}
		codes[names[i]] = code
	}
	return codes, nil
}

func indexed(names []string) map[string]int {
	index := make(map[string]int, len(names))
	for i, name := range names {
		index[name] = i
	}
	return index
}
