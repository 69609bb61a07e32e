package graph

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/data"
	"tessera/losses"
	"tessera/ops"
)

// ColumnName is the name of the input for a column besides images and labels, (batch, shape).
func ColumnName(column string) string { return "column." + column }

// classesName is the name of the one-hot input for a column of classes.
func classesName(column string) string {
	if column == losses.Labels {
		return Labels
	}
	return ColumnName(column) + ".classes"
}

// isColumn reports whether the model's data set has a column of that name.
func (b *builder) isColumn(name string) bool {
	_, ok := b.model.Layout.Column(name)
	return ok
}

// column returns the node of a column other than images by its name, (batch, shape); of one number for each sample (batch, 1). It adds the
// input at the first use. Labels are numbers here, not one-hot: see classes.
func (b *builder) column(name string) (*gorgonia.Node, error) {
	at := ColumnName(name)
	if n := b.streams[at]; n != nil {
		return n, nil
	}
	c, ok := b.model.Layout.Column(name)
	if !ok {
		return nil, fmt.Errorf("the data set has no column %q", name)
	}
	if c.Type == "" {
		return nil, fmt.Errorf("the shape of the column %q is not known without the data set", name)
	}
	shape := append([]int{b.request.Batch}, c.Shape...)
	if len(c.Shape) == 0 {
		shape = append(shape, 1)
	}
	b.streams[at] = b.filled(name, at, 0, shape...)
	return b.streams[at], nil
}

// classes returns the input for a column of classes, one-hot, (batch, classes). It adds the input at the first use.
func (b *builder) classes(column string, classes int) *gorgonia.Node {
	at := classesName(column)
	if b.streams[at] == nil {
		b.streams[at] = b.filled(column, at, classes, b.request.Batch, classes)
	}
	return b.streams[at]
}

// named returns a column or a value of the model, (batch, values). Images are the clean ones if the encoder gets distorted ones.
func (b *builder) named(name string, p pass) (*gorgonia.Node, error) {
	if name == losses.Images {
		return b.target()
	}
	return b.flatValue(value{name, p})
}

// Against implements [losses.Values].
func (t *term) Against() (*gorgonia.Node, error) {
	if t.reads.Classes {
		return t.streams[classesName(t.reads.Against)], nil
	}
	return t.named(t.reads.Against, passOf(t.reads))
}

// Counts implements [losses.Values]. A mask of one number for each sample multiplies the weights of the samples.
func (t *term) Counts() (counts losses.Counts, err error) {
	for _, name := range []string{t.declared.Mask, t.declared.SampleWeight} {
		if name == "" {
			continue
		}
		n, err := t.named(name, passOf(t.reads))
		if err != nil {
			return counts, err
		}
		if n.Shape()[1] > 1 {
			counts.Entries = n
			continue
		}
		if n, err = ops.Reshape(n, n.Shape()[0]); err != nil {
			return counts, err
		}
		if counts.Samples != nil {
			if n, err = gorgonia.HadamardProd(counts.Samples, n); err != nil {
				return counts, err
			}
		}
		counts.Samples = n
	}
	return counts, nil
}

// gradientPrefix begins the names of gradients with respect to columns.
const gradientPrefix = "gradient of column "

// Gradient is the name of a value that a program can compute alone: the gradient of the objective, without noise, with respect to a
// column. The terms are those that can be measured without training ([losses.Reads.Validates]). Of the images it is the gradient with
// respect to those that are encoded; the program then has the input [Target], the clean ones.
func Gradient(column string) string { return gradientPrefix + column }

// isGradient reports whether a name is that of a gradient with respect to a column.
func isGradient(name string) bool { return strings.HasPrefix(name, gradientPrefix) }

// gradientOf adds the gradient of the terms with respect to a column.
func (b *builder) gradientOf(column string, terms []int) error {
	_, loss, err := b.weighted(terms, 1, all)
	if err != nil {
		return err
	}
	at := ColumnName(column)
	if column == losses.Images {
		at = Images
	}
	n := b.streams[at]
	if n == nil || loss == nil || !ancestors(loss)[n] {
		return fmt.Errorf("the objective does not depend on the column %q", column)
	}
	grads, err := gorgonia.Grad(loss, n)
	if err != nil {
		return fmt.Errorf("differentiating the loss: %w", err)
	}
	return b.tap(Gradient(column), grads[0])
}

// ColumnsOf describes the columns that a value is computed from, images among them.
func (m *Model) ColumnsOf(value string) (list []data.Column) {
	for _, column := range m.Layout.Sources(value) {
		described, _ := m.Layout.Column(column)
		list = append(list, described)
	}
	return list
}
