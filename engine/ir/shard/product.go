package shard

import (
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// role is what the axis of a factor that contains the batch is in a product.
type role uint8

const (
	none  role = iota // the factor has no such axis
	lead              // one of the leading axes, which all matrices have
	side              // a side of the result: the rows of A, the columns of B
	depth             // summed over
)

// factor is one factor of a product.
type factor struct {
	shape []int
	form  form
	role  role
	at    axis
	depth int // axis that is summed over
}

func (s *sharder) factor(v *ir.Value, summed int) factor {
	f := factor{shape: v.Shape, form: s.formOf(v), depth: summed}
	if f.form.kind != images {
		return f
	}
	a, ok := s.locate(v.Shape, f.form)
	if !ok {
		return f
	}
	switch f.at = a; {
	case a.index < len(v.Shape)-2:
		f.role = lead
	case a.index == summed:
		f.role = depth
	default:
		f.role = side
	}
	return f
}

// product decides C = A B. One factor of images is enough to divide the work. If both are images, and they do not meet along
// the same axis, one is gathered.
func (s *sharder) product(v *ir.Value, o ir.Product) *decision {
	n := len(v.Shape)
	pick := func(transposed bool, axis int) int {
		if transposed {
			return 2*n - 3 - axis // the other one of the last two
		}
		return axis
	}
	a, b := s.factor(v.Args[0], pick(o.TransA, n-1)), s.factor(v.Args[1], pick(o.TransB, n-2))
	deep := func(outer int) *decision {
		return s.when(true, v, form{kind: terms}, at(a.shape, a.depth, outer), at(b.shape, b.depth, outer))
	}
	switch {
	case a.role == lead:
		return s.when(true, v, a.form, a.form, a.form)
	case b.role == lead:
		return s.when(true, v, b.form, b.form, b.form)
	case a.role == side && (b.role != side || volume.Of(b.shape) <= volume.Of(a.shape)):
		return s.when(true, v, at(v.Shape, n-2, a.at.outer), a.form, form{})
	case b.role == side:
		return s.when(true, v, at(v.Shape, n-1, b.at.outer), form{}, b.form)
	case a.role == depth:
		return deep(a.at.outer)
	case b.role == depth:
		return deep(b.at.outer)
	}
	return nil
}
