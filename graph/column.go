package graph

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/losses"
)

// ColumnName returns the name of the input (batch, shape) for a column other than images and labels.
func ColumnName(column string) string { return "column." + column }

// classesName returns the name of the one-hot input for a column of classes.
func classesName(column string) string {
	if column == losses.Labels {
		return Labels
	}
	return ColumnName(column) + ".classes"
}

// isColumn reports whether the model's data set has a column with the given name.
func (b *builder) isColumn(name string) bool {
	_, ok := b.model.Layout.Column(name)
	return ok
}

// column returns the node of a column other than images, (batch, shape), or (batch, 1) for a column of single numbers.
// It adds the input on first use. Labels are numbers here, not one-hot rows; see classes.
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

// classes returns the one-hot input (batch, classes) for a column of classes. It adds the input on first use.
func (b *builder) classes(column string, classes int) *gorgonia.Node {
	at := classesName(column)
	if b.streams[at] == nil {
		b.streams[at] = b.filled(column, at, classes, b.request.Batch, classes)
	}
	return b.streams[at]
}

// named returns a column or a value of the model, (batch, values). If the encoder reads distorted images, "images"
// means the clean ones.
func (b *builder) named(name string, p pass) (*gorgonia.Node, error) {
	if name == losses.Images {
		return b.target()
	}
	return b.flatValue(value{name, p})
}

func (t *term) Against() (*gorgonia.Node, error) {
	if t.reads.Classes {
		return t.streams[classesName(t.reads.Against)], nil
	}
	return t.named(t.reads.Against, passOf(t.reads))
}

// Counts implements [losses.Values]. A mask with one number for each sample multiplies the sample weights.
func (t *term) Counts() (counts losses.Counts, err error) {
	for _, name := range t.declared.Counted() {
		n, err := t.named(name, passOf(t.reads))
		if err == nil && !t.isColumn(name) {
			n, err = ops.Stop(n) // without a gradient: otherwise a model could learn to ignore its errors
		}
		if err != nil {
			return counts, err
		}
		if n.Shape()[1] > 1 || name == t.declared.Present() {
			if n, err = t.widened(n); err != nil {
				return counts, err
			}
			if counts.Entries != nil {
				if n, err = gorgonia.HadamardProd(counts.Entries, n); err != nil {
					return counts, err
				}
			}
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

// widened repeats a mask (batch, n) so that it has one number for each number of the value that the term reads. For
// tokens, the number of a token is repeated for all its features.
func (t *term) widened(n *gorgonia.Node) (*gorgonia.Node, error) {
	batch, places := n.Shape()[0], n.Shape()[1]
	times := 1
	if places < t.model.Layout.Size(t.declared.On) {
		times = max(1, t.model.Layout.PerPlace(t.declared.On, places))
	}
	if times == 1 {
		return n, nil
	}
	var c ops.Chain
	one := c.Reshape(n, batch*places, 1)
	all := one
	for width := 1; width < times; width *= 2 {
		all = c.Join(all, c.Columns(all, 0, min(width, times-width)))
	}
	return c.Reshape(all, batch, places*times), c.Err()
}

// gradientPrefix is the start of the names of gradients with respect to columns.
const gradientPrefix = "gradient of column "

// Gradient returns the name of the output that is the gradient of the objective with respect to a column. A program for
// this name computes only this gradient, without noise. The objective consists of the terms that can be measured
// without training ([losses.Reads.Validates]). For images, the gradient is with respect to the encoded images, and the
// program has the additional input [Target], the clean images.
func Gradient(column string) string { return gradientPrefix + column }

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
