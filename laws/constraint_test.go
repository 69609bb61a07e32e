package laws_test

import (
	"slices"
	"testing"

	"tessera/constraints"
	"tessera/laws"
)

// wrong is a non-negativity constraint whose Project is not the projection.
type wrong struct {
	constraints.NonNeg
	project func(w []float32)
}

func (c wrong) Project(w []float32, _ []int) { c.project(w) }

// falsePointwise is a constraint that incorrectly declares that it treats elements independently.
type falsePointwise struct{ constraints.UnitNorm }

func (falsePointwise) Pointwise() {}

// falseRowWise is a constraint that incorrectly declares that it treats rows independently: it makes the columns orthogonal.
type falseRowWise struct{ constraints.Orthogonal }

func (*falseRowWise) RowWise() {}

// each returns a projection that applies f to every element.
func each(f func(float32) float32) func([]float32) {
	return func(w []float32) {
		for i := range w {
			w[i] = f(w[i])
		}
	}
}

// Every law must fail for some incorrect part; otherwise the law proves nothing.
func TestWrongConstraintsBreakTheirLaw(t *testing.T) {
	nonneg := constraints.NonNeg{}
	var sink []float32
	constraint := func(c constraints.Constraint) func() constraints.Constraint {
		return func() constraints.Constraint { return c }
	}
	faulty := map[string]func() constraints.Constraint{
		"makes any weights feasible": constraint(wrong{project: each(func(v float32) float32 { return max(v, -0.01) })}),
		"leaves feasible points as they are": constraint(wrong{project: each(func(v float32) float32 {
			return max(v, 0) * 0.999999
		})}),
		"finds the nearest feasible point": constraint(wrong{project: each(func(v float32) float32 { return max(v, -v) })}),
		"writes only inside of the parameter": constraint(wrong{project: func(w []float32) {
			nonneg.Project(w, nil)
			if len(w) < cap(w) {
				w[:len(w)+1][len(w)] = 0
			}
		}}),
		"preserves NaN": constraint(wrong{project: each(func(v float32) float32 {
			if v > 0 {
				return v
			}
			return 0
		})}),
		"projects parts like the whole if pointwise": constraint(falsePointwise{}),
		"projects rows like the whole if row by row": constraint(&falseRowWise{}),
		"does not allocate": constraint(wrong{project: func(w []float32) {
			sink = slices.Clone(w)
			nonneg.Project(w, nil)
		}}),
		"has no memory of earlier calls": func() constraints.Constraint {
			calls := float32(0)
			return wrong{project: func(w []float32) {
				each(func(v float32) float32 { return max(v, calls*1e-6) })(w)
				calls++
			}}
		},
	}
	mustBreak(t, laws.Constraint, faulty)
	_ = sink
}

func TestTheRightConstraintBreaksNoLaw(t *testing.T) {
	if got := laws.Broken(laws.Constraint, func() constraints.Constraint { return constraints.NonNeg{} }); len(got) > 0 {
		t.Errorf("the right constraint breaks %q", got)
	}
}
