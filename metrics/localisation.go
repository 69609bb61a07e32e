package metrics

import (
	"math"
	"slices"
)

// The mass of a pixel is a_n = max over channels of |w_n|. The radius of gyration is sqrt(sum_n a_n |p_n - c|^2 / sum_n a_n) with the centre
// c = sum_n a_n p_n / sum_n a_n.
func init() {
	register("localisation", "how local the atoms are", Description{
		Measures: []Measure{
			{Name: "atom_area", Better: Lower, Unit: "pixels", Doc: "mean over atoms of the number of pixels where a, the largest \\|w_j\\| of all channels, is above " +
				"half of its maximum. Atoms of zeros are left out"},
			{Name: "atom_components", Better: Lower, Doc: "mean over atoms of the number of 4-connected components of the pixels of `atom_area`"},
			{Name: "atom_radius", Better: Lower, Unit: "pixels", Doc: "mean over atoms of their radius of gyration, the root of the mean squared distance from " +
				"their centre of mass, pixels weighed by a"},
			{Name: "atom_entropy", Better: Lower, Doc: "mean over atoms of their spatial entropy -Σ q ln q / ln N, q = a / Σ a. 0 for one pixel, 1 for a flat image"},
		},
		Reads: ReadsAtoms | ReadsPictures, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		var area, components, radius, entropy float64
		n := 0
		for j := range s.Atoms.Count {
			e := newExtent(s.Atoms.row(j), s.Atoms.Shape)
			if e.total == 0 {
				continue
			}
			n++
			count, parts := e.aboveHalf()
			area += float64(count)
			components += float64(parts)
			radius += e.gyration()
			entropy += e.entropy()
		}
		if n == 0 {
			return Fixed(NotApplicable("every atom is zero")), nil
		}
		mean := func(sum float64) Value { return Number(sum / float64(n)) }
		return Fixed(mean(area), mean(components), mean(radius), mean(entropy)), nil
	})
}

// extent contains the mass of every pixel of an atom.
type extent struct {
	mass  []float64
	width int
	total float64
}

func newExtent(atom []float32, shape []int) *extent {
	e := &extent{mass: make([]float64, shape[0]*shape[1]), width: shape[1]}
	channels := len(atom) / len(e.mass)
	for i, v := range atom {
		e.mass[i/channels] = max(e.mass[i/channels], math.Abs(float64(v)))
	}
	for _, a := range e.mass {
		e.total += a
	}
	return e
}

// aboveHalf counts the pixels with a mass above half of the maximum, and their 4-connected components.
func (e *extent) aboveHalf() (pixels, components int) {
	half := slices.Max(e.mass) / 2
	open := make([]bool, len(e.mass)) // above half, and not counted yet
	for p, a := range e.mass {
		open[p] = a > half
	}
	var stack []int
	for p := range open {
		if !open[p] {
			continue
		}
		components++
		open[p], stack = false, append(stack, p)
		for len(stack) > 0 {
			q := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			pixels++
			for _, r := range e.neighbours(q) {
				if open[r] {
					open[r], stack = false, append(stack, r)
				}
			}
		}
	}
	return pixels, components
}

// neighbours returns the indices of the pixels above, below, to the left and to the right of p; p itself stands for pixels
// outside the image.
func (e *extent) neighbours(p int) (near [4]int) {
	near = [4]int{p, p, p, p}
	if p >= e.width {
		near[0] = p - e.width
	}
	if p+e.width < len(e.mass) {
		near[1] = p + e.width
	}
	if p%e.width > 0 {
		near[2] = p - 1
	}
	if (p+1)%e.width > 0 {
		near[3] = p + 1
	}
	return near
}

func (e *extent) gyration() float64 {
	var y, x, squares float64
	for p, a := range e.mass {
		y += a * float64(p/e.width) / e.total
		x += a * float64(p%e.width) / e.total
	}
	for p, a := range e.mass {
		dy, dx := float64(p/e.width)-y, float64(p%e.width)-x
		squares += a / e.total * (dy*dy + dx*dx)
	}
	return math.Sqrt(squares)
}

// entropy returns the spatial entropy as a share of the maximum, the entropy of a constant image.
func (e *extent) entropy() float64 {
	if len(e.mass) < 2 {
		return 0
	}
	sum := 0.0
	for _, a := range e.mass {
		if q := a / e.total; q > 0 {
			sum -= q * math.Log(q)
		}
	}
	return sum / math.Log(float64(len(e.mass)))
}
