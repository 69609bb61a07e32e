package coder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/vectors"
	"tessera/losses"
)

// ValueNames returns the names of the values of a sample, in order, as in the file of the data set: for a data set csv, the names of
// its columns. Those of a sparse matrix or of texts are kept in the run. It returns nil if the values have no names. If the file is missing or has
// changed since the training, by its SHA-256, it returns a [*data.Error].
func (c *Coder) ValueNames(ctx context.Context) ([]string, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if c.trained.ColumnNames != nil {
		return c.ColumnNames(), nil
	}
	return c.Origin.ValueNames(ctx, c.trained.Spec.Dataset)
}

// Columns describes the columns from which a value is computed, with the names of the classes.
func (c *Coder) Columns(value string) []data.Column { return c.withClasses(c.described.Columns(value)) }

// InFile returns descriptions of the columns that a file must contain for [Coder.Given] to return the given columns. Drawn columns are
// replaced by the columns from which they are drawn.
func (c *Coder) InFile(columns []data.Column) []data.Column {
	return c.withClasses(c.trained.Spec.BehindDrawn(columns))
}

// Measured returns descriptions of the columns that a measurement of the run can read from a file: the labels, and the columns of the model.
func (c *Coder) Measured() []data.Column {
	columns := []data.Column{{Name: data.LabelsColumn, Type: data.Whole}}
	if c.trained.Model != nil {
		columns = append(columns, c.trained.Layout.Columns...)
	}
	columns = c.InFile(columns)
	if columns[0].Names == nil {
		columns[0].Names = c.numbers()
	}
	return columns
}

// numbers returns the numbers of the classes, as texts, if the run predicts labels that were numbers; else nil.
func (c *Coder) numbers() []string {
	if c.trained.Model == nil || len(c.trained.Classes) > 0 {
		return nil
	}
	for _, head := range c.trained.Spec.ClassHeads() {
		if size, err := c.length(head.Value); err == nil && head.Column == losses.Labels {
			return lists.Map(lists.Range(0, size), strconv.Itoa)
		}
	}
	return nil
}

// withClasses adds the names of the classes to the column of labels, if columns contains it.
func (c *Coder) withClasses(columns []data.Column) []data.Column {
	for i := range columns {
		if columns[i].Name == losses.Labels {
			columns[i].Names = c.trained.Classes
		}
	}
	return columns
}

// SameClasses returns a [*data.Error] if the training took the numbers of the labels for numbers of classes, as earlier versions did, and
// the set takes them for their names.
func (c *Coder) SameClasses(set *data.Set) error {
	spec := c.trained.Spec
	if len(c.trained.Classes) > 0 || !spec.ReadsLabels() || !data.AreNumbers(set.Classes) {
		return nil
	}
	return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("its labels are now %d classes with numbers as names, but the run was trained on numbers of classes up to the largest", len(set.Classes)),
		Hint: "train a new run"}
}

// Given returns the values of all columns of samples that were read from a file, labels included, as this coder reads them: of an exact
// scaling take [Coder.Centred], because float32 rounds the samples themselves. Drawn columns are drawn as in an evaluation: the random stream of a sample depends on the seed of the run and the sample's position in the file.
func (c *Coder) Given(samples *data.Images, columns []data.Column) (map[string][]float32, error) {
	all := samples.WithMeans(c.trained.Means).All() // with their masks
	if all == nil {
		all = map[string][]float32{}
	}
	all[data.ImagesColumn] = samples.Raw() // NaN are missing entries
	if c.shift != nil {
		all[data.ImagesColumn] = samples.Centred(c.shift)
	}
	spec := c.trained.Spec
	if spec.Dataset.Drawn == nil {
		return all, nil
	}
	needed := lists.Only(*spec.Dataset.Drawn, func(d data.Drawn) bool {
		return slices.ContainsFunc(columns, func(column data.Column) bool { return column.Name == d.Name })
	})
	drawn, err := samples.DrawnAsRead(spec.Train.Seed, needed...)
	for _, column := range columns {
		if values, ok := drawn[column.Name]; ok && column.AsImages {
			drawn[column.Name] = c.shift.Applied(values)
		}
	}
	maps.Copy(all, drawn)
	return all, err
}

// Prediction is the prediction of a head of a classifier for samples.
type Prediction struct {
	Head          string
	Classes       []string  // names of the classes, in the order of the columns of Probabilities
	Labels        []int     // index in Classes of the predicted class of each sample: the most probable class, unless the head has thresholds
	Probabilities []float32 // one row per sample, one column per class: the softmax of the logits
}

// Probability returns the probability of the predicted class of sample i.
func (p *Prediction) Probability(i int) float32 {
	return p.Probabilities[i*len(p.Classes)+p.Labels[i]]
}

// ErrNoClasses is the error for a model without a head that predicts classes.
var ErrNoClasses = errors.New("no loss of the model compares a head with labels: there are no classes to predict")

// Predict returns the classes that a head predicts for samples. head is one of ClassHeads; "" selects the only one. It returns
// [ErrNoClasses] for a model without such a head.
func (c *Coder) Predict(head string, samples []float32) (*Prediction, error) {
	return c.PredictFrom(head, map[string][]float32{losses.Images: samples})
}

// PredictFrom is like [Coder.Predict], for a head that is computed from several columns: columns contains the values of the columns in
// Columns, by name, row by row. A head with thresholds also needs the column of the groups, one of [Coder.DecisionColumns].
func (c *Coder) PredictFrom(head string, columns map[string][]float32) (*Prediction, error) {
	head, err := c.ClassHead(head)
	if err != nil {
		return nil, err
	}
	logits, err := c.ValueOf(head, columns)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, column := range c.Columns(head) {
		n = len(columns[column.Name]) / column.Size()
	}
	p, err := c.PredictionOf(head, logits, n)
	if err == nil {
		err = c.decide(p, logits, columns)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ClassHead returns the name of a head that predicts classes: head, or the only one if head is "".
func (c *Coder) ClassHead(head string) (string, error) {
	if err := c.Ready(); err != nil {
		return "", err
	}
	heads := c.ClassHeads()
	switch {
	case len(heads) == 0:
		return "", fmt.Errorf("%s: %w", c.path, ErrNoClasses)
	case head == "" && len(heads) == 1:
		return heads[0], nil
	case !slices.Contains(heads, head):
		return "", fmt.Errorf("%s: head: got %q, want one of %s", c.path, head, table.Quoted(heads))
	}
	return head, nil
}

// PredictionOf returns the prediction for n samples from the logits that an [Encoder] of the head computes. Where a logit is not finite,
// a sample has no class: the error is a [*data.Error] that names it.
func (c *Coder) PredictionOf(head string, logits []float32, n int) (*Prediction, error) {
	k := len(logits) / max(1, n)
	p := &Prediction{Head: head, Classes: c.classNames(head, k), Labels: make([]int, n), Probabilities: make([]float32, len(logits))}
	for i := range n {
		row, to := logits[i*k:(i+1)*k], p.Probabilities[i*k:(i+1)*k]
		class, err := vectors.Class(row)
		if err != nil {
			return nil, &data.Error{Problem: fmt.Sprintf("sample %d: head %q", i, head), Err: err}
		}
		p.Labels[i] = class
		most, sum := float64(row[class]), 0.0
		for _, z := range row {
			sum += math.Exp(float64(z) - most)
		}
		for j, z := range row {
			to[j] = float32(math.Exp(float64(z)-most) / sum)
		}
	}
	return p, nil
}

// HeadClasses returns the names of the classes that a head predicts, or their numbers if they have no names.
func (c *Coder) HeadClasses(head string) []string {
	if !slices.Contains(c.Values(), head) || c.trained.Model == nil {
		return nil
	}
	return c.classNames(head, c.trained.Layout.Size(head))
}

// classNames returns the names of the n classes that a head predicts.
func (c *Coder) classNames(head string, n int) []string {
	if column := c.ClassColumn(head); c.trained.Model != nil && column != data.LabelsColumn {
		of, _ := c.trained.Layout.Column(column)
		return named(of.Names, n)
	}
	return named(c.trained.Classes, n)
}

// named returns n names: the known names first, then numbers.
func named(known []string, n int) []string {
	names := slices.Clone(known[:min(n, len(known))])
	for i := len(names); i < n; i++ {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// CodeBook returns the value of the indices of a code that consists of entries of a code book: the last layer of the encoder; ok is false
// for another model. A sample has rows x columns indices, those of a code without a grid one row.
func (c *Coder) CodeBook() (index string, rows, columns int, ok bool) {
	if c.trained.Model == nil || len(c.trained.Layout.Encoder) == 0 {
		return "", 0, 0, false
	}
	last := c.trained.Layout.Encoder[len(c.trained.Layout.Encoder)-1]
	for _, v := range last.Published {
		if v.Entries > 0 && len(v.Shape) == 1 {
			rows, columns = 1, v.Shape[0]
			if shape := last.Out; len(shape) == 3 && shape[0]*shape[1] == columns {
				rows, columns = shape[0], shape[1]
			}
			return last.Path + "." + v.Name, rows, columns, true
		}
	}
	return "", 0, 0, false
}
