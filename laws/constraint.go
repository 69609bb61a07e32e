package laws

import (
	"fmt"
	"math"
	"slices"

	"tessera/constraints"
	"tessera/internal/volume"
)

// Constraint contains the laws of constraints, tested on parameters of every rank and scale, including edge values.
var Constraint = inTrials(eachPoint, []law[point]{
	{"makes any weights feasible", point.feasible},
	{"leaves feasible points as they are", point.idempotent},
	{"finds the nearest feasible point", point.nearest},
	{"writes only inside of the parameter", point.inside},
	{"projects parts like the whole if pointwise", point.partwise},
	{"projects rows like the whole if row by row", point.rowwise},
	{"has no memory of earlier calls", point.forgets},
}).and(once([]law[func() constraints.Constraint]{
	{"preserves NaN", keepsNaN},
	{"does not allocate", constraintAllocates},
}))

// slack is the relative tolerance of a bound for float32 rounding.
const slack = 4e-7

// point is a constraint with a parameter before projection.
type point struct {
	constraints.Constraint // the same constraint in all trials
	fresh                  func() constraints.Constraint
	name                   string
	shape                  []int
	w                      []float32
}

func (p point) String() string { return fmt.Sprintf("%s %v", p.name, p.shape) }

func eachPoint(fresh func() constraints.Constraint, try func(p point)) error {
	r, c := source(), fresh()
	for _, shape := range [][]int{{5}, {1, 1}, {3, 7}, {7, 1}, {4, 64}, {3, 2, 3, 3}} {
		n := volume.Of(shape)
		at := func(name string, w []float32) { try(point{c, fresh, name, shape, w}) }
		for _, scale := range []float64{1e-42, 1e-6, 0.05, 1, 30, 1e20} {
			at(fmt.Sprintf("normal * %g", scale), normal(r, n, scale))
		}
		fill := func(v float32) []float32 { return slices.Repeat([]float32{v}, n) }
		at("zeros", fill(0))
		at("negative zeros", fill(float32(math.Copysign(0, -1))))
		at("smallest denormals", fill(math.SmallestNonzeroFloat32))
		at("negative denormals", fill(-math.SmallestNonzeroFloat32))
		at("large", fill(1e30))
		at("minus one", fill(-1))
		at("zeros but one", append(fill(0)[1:], -2))
	}
	return nil
}

// project returns the projection of a copy of w.
func (p point) project(c constraints.Constraint, w []float32) []float32 {
	v := slices.Clone(w)
	c.Project(v, p.shape)
	return v
}

// violation returns an error if v is not feasible, up to rounding.
func (p point) violation(v []float32) error {
	if d := p.Violation(v, p.shape); !(d >= 0 && d <= slack*(1+size(v))) {
		return fmt.Errorf("violation %g after Project, want 0", d)
	}
	return nil
}

func (p point) feasible() error {
	v := p.project(p, p.w)
	if i := slices.IndexFunc(v, notFinite); i >= 0 {
		return fmt.Errorf("element %d becomes %v", i, v[i])
	}
	return p.violation(v)
}

func (p point) idempotent() error {
	feasible := p.project(p, p.w)
	return differ("projected twice", p.project(p, feasible), feasible)
}

// nearest compares the projection with feasible points: projections of random points near to and far from w, and of
// the weights themselves scaled, shifted and with one element changed.
func (p point) nearest() error {
	r, v := source(), p.project(p, p.w)
	ours := distance(p.w, v)
	for trial := range 60 {
		u := slices.Clone(p.w)
		switch scale := math.Pow(10, r.Float64()*4-3); trial % 4 {
		case 0:
			u = normal(r, len(u), scale)
		case 1:
			for i := range u {
				u[i] += float32(r.NormFloat64() * scale)
			}
		case 2:
			copy(u, v)
			for i := range u {
				u[i] += float32(r.NormFloat64() * scale * 1e-3)
			}
		case 3:
			u[r.IntN(len(u))] = float32(r.NormFloat64() * scale)
		}
		p.Project(u, p.shape)
		if err := p.violation(u); err != nil {
			return err
		}
		if d := distance(p.w, u); d < ours*(1-slack)-slack*slack {
			return fmt.Errorf("projected to distance %g, a feasible point is at %g", ours, d)
		}
	}
	return nil
}

func (p point) inside() error {
	all, inner := padded(p.w)
	shape := slices.Clone(p.shape)
	p.Project(inner, shape)
	if !slices.Equal(shape, p.shape) {
		return fmt.Errorf("the shape becomes %v", shape)
	}
	if err := outside(all); err != nil {
		return err
	}
	return differ("at another address", inner, p.project(p, p.w))
}

func (p point) partwise() error {
	if _, ok := p.Constraint.(constraints.Pointwise); !ok {
		return nil
	}
	r, parts := source(), slices.Clone(p.w)
	for rest := parts; len(rest) > 0; {
		n := 1 + r.IntN(len(rest))
		p.Project(rest[:n], nil)
		rest = rest[n:]
	}
	return differ("in parts", parts, p.project(p, p.w))
}

func (p point) rowwise() error {
	if _, ok := p.Constraint.(constraints.RowWise); !ok || len(p.shape) != 2 {
		return nil
	}
	rows, width := slices.Clone(p.w), p.shape[1]
	for row := range slices.Chunk(rows, width) {
		p.Project(row, []int{1, width})
	}
	return differ("row by row", rows, p.project(p, p.w))
}

// forgets compares one constraint that is used for all points with a new constraint for each point.
func (p point) forgets() error {
	return differ("after other points", p.project(p, p.w), p.project(p.fresh(), p.w))
}

// distance returns the Euclidean distance of a and b in float64.
func distance(a, b []float32) float64 {
	s := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return math.Sqrt(s)
}

// size returns the Euclidean length of v in float64.
func size(v []float32) float64 { return distance(v, make([]float32, len(v))) }

func keepsNaN(fresh func() constraints.Constraint) error {
	c := fresh()
	for n := 1; n <= 40; n += 3 {
		for _, shape := range [][]int{{n}, {1, n}, {n, 1}} {
			w := normal(source(), n, 1)
			w[n/2] = float32(math.NaN())
			c.Project(w, shape)
			if x := w[n/2]; x == x {
				return fmt.Errorf("%v: NaN becomes %v, so a diverged run would continue", shape, x)
			}
			if d := c.Violation(w, shape); d == d {
				return fmt.Errorf("%v: violation %v of weights with a NaN, want NaN", shape, d)
			}
		}
	}
	return nil
}

func constraintAllocates(fresh func() constraints.Constraint) error {
	c, w, shape := fresh(), normal(source(), 64*64, 1), []int{64, 64}
	return allocates(func() { c.Project(w, shape) })
}
