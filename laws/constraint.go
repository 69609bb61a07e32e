package laws

import (
	"fmt"
	"math"
	"slices"

	"tessera/constraints"
	"tessera/internal/volume"
)

// Constraint contains the laws of constraints.
var Constraint = Laws[constraints.Constraint]{
	{"makes any weights feasible", feasible},
	{"leaves feasible points as they are", idempotent},
	{"finds the nearest feasible point", nearest},
	{"writes only inside of the parameter", inside},
	{"preserves NaN", keepsNaN},
	{"projects parts like the whole if pointwise", partwise},
	{"has no memory of earlier calls", constraintForgets},
	{"does not allocate", constraintAllocates},
}

// slack is the relative tolerance of a bound for float32 rounding.
const slack = 4e-7

// point is a parameter before projection.
type point struct {
	name  string
	shape []int
	w     []float32
}

// points returns parameters of every rank and scale, edge values included.
func points() []point {
	r := source()
	var all []point
	for _, shape := range [][]int{{5}, {1, 1}, {3, 7}, {7, 1}, {4, 64}, {3, 2, 3, 3}} {
		n := volume.Of(shape)
		for _, scale := range []float64{1e-42, 1e-6, 0.05, 1, 30, 1e20} {
			all = append(all, point{fmt.Sprintf("normal * %g", scale), shape, normal(r, n, scale)})
		}
		fill := func(v float32) []float32 { return slices.Repeat([]float32{v}, n) }
		all = append(all,
			point{"zeros", shape, fill(0)},
			point{"negative zeros", shape, fill(float32(math.Copysign(0, -1)))},
			point{"smallest denormals", shape, fill(math.SmallestNonzeroFloat32)},
			point{"negative denormals", shape, fill(-math.SmallestNonzeroFloat32)},
			point{"large", shape, fill(1e30)},
			point{"minus one", shape, fill(-1)})
		sparse := fill(0)
		sparse[n-1] = -2
		all = append(all, point{"zeros but one", shape, sparse})
	}
	return all
}

// project returns the projection of a copy of w.
func project(c constraints.Constraint, w []float32, shape []int) []float32 {
	v := slices.Clone(w)
	c.Project(v, shape)
	return v
}

func feasible(fresh func() constraints.Constraint) error {
	c := fresh()
	for _, p := range points() {
		v := project(c, p.w, p.shape)
		for i, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("%s %v: element %d becomes %v", p.name, p.shape, i, x)
			}
		}
		if d := c.Violation(v, p.shape); !(d >= 0 && d <= slack*(1+size(v))) {
			return fmt.Errorf("%s %v: violation %g after Project, want 0", p.name, p.shape, d)
		}
	}
	return nil
}

func idempotent(fresh func() constraints.Constraint) error {
	c := fresh()
	for _, p := range points() {
		once := project(c, p.w, p.shape)
		if err := differ(fmt.Sprintf("%s %v: projected twice", p.name, p.shape), project(c, once, p.shape), once); err != nil {
			return err
		}
	}
	return nil
}

// nearest compares the projection with feasible points: projections of random points near to and far from w, and of
// the weights themselves scaled, shifted and with one element changed.
func nearest(fresh func() constraints.Constraint) error {
	c, r := fresh(), source()
	for _, p := range points() {
		v := project(c, p.w, p.shape)
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
			c.Project(u, p.shape)
			if d := c.Violation(u, p.shape); !(d <= slack*(1+size(u))) {
				return fmt.Errorf("%s %v: Project leaves a violation of %g", p.name, p.shape, d)
			}
			if d := distance(p.w, u); d < ours*(1-slack)-slack*slack {
				return fmt.Errorf("%s %v: projected to distance %g, a feasible point is at %g", p.name, p.shape, ours, d)
			}
		}
	}
	return nil
}

// distance is the Euclidean distance of a and b in float64.
func distance(a, b []float32) float64 {
	s := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return math.Sqrt(s)
}

// size is the Euclidean length of v in float64.
func size(v []float32) float64 { return distance(v, make([]float32, len(v))) }

func inside(fresh func() constraints.Constraint) error {
	const guard = 16
	c := fresh()
	for _, p := range points() {
		n := len(p.w)
		padded := slices.Repeat([]float32{-77}, n+2*guard)
		copy(padded[guard:], p.w)
		shape := slices.Clone(p.shape)
		c.Project(padded[guard:guard+n], shape)
		if !slices.Equal(shape, p.shape) {
			return fmt.Errorf("%s %v: the shape becomes %v", p.name, p.shape, shape)
		}
		for i, x := range padded {
			if outside := i < guard || i >= guard+n; outside && x != -77 {
				return fmt.Errorf("%s %v: writes %d elements from its start", p.name, p.shape, i-guard)
			}
		}
		if err := differ(p.name+": at another address", padded[guard:guard+n], project(c, p.w, p.shape)); err != nil {
			return err
		}
	}
	return nil
}

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

func partwise(fresh func() constraints.Constraint) error {
	c := fresh()
	if _, ok := c.(constraints.Pointwise); !ok {
		return nil
	}
	r := source()
	for _, p := range points() {
		whole, parts := project(c, p.w, p.shape), slices.Clone(p.w)
		for rest := parts; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			c.Project(rest[:n], nil)
			rest = rest[n:]
		}
		if err := differ(fmt.Sprintf("%s %v: in parts", p.name, p.shape), parts, whole); err != nil {
			return err
		}
	}
	return nil
}

// constraintForgets compares one constraint, for all points, with a new one for each of them.
func constraintForgets(fresh func() constraints.Constraint) error {
	used := fresh()
	for _, p := range points() {
		got, want := project(used, p.w, p.shape), project(fresh(), p.w, p.shape)
		if err := differ(fmt.Sprintf("%s %v: after other points", p.name, p.shape), got, want); err != nil {
			return err
		}
	}
	return nil
}

func constraintAllocates(fresh func() constraints.Constraint) error {
	c, w, shape := fresh(), normal(source(), 64*64, 1), []int{64, 64}
	return allocates(func() { c.Project(w, shape) })
}
