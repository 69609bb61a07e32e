package metrics

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
	"tessera/internal/lists"
	"tessera/internal/vectors"
)

const (
	gaborFit    = 0.7 // share of an atom's energy above which its Gabor function describes it
	gaborStarts = 3   // wave vectors from which the fit starts
	gaborCalls  = 400 // evaluations per start
)

// The metric gabor fits a Gabor function to every atom: a Gaussian with the widths s and t along and across the direction d,
// centred at c, times a wave of frequency f cycles per pixel along d,
//
//	g(p) = exp(-u²/(2s²) - v²/(2t²)) (a cos 2πfu + b sin 2πfu),   u = d·(p-c), v = d⟂·(p-c)
//
// The fit is the share of the energy of the atom that g explains, 1 - |w - g|² / |w|². a and b are fitted by least squares; the
// others are found by the simplex method of Nelder and Mead from three wave vectors where the spectrum of the atom is largest. An
// atom counts as a Gabor function if the fit is at least 0.7 and g is localised (c is in the image, s and t are at most half of
// its shorter side) and band-pass (the wave vector is at least one standard deviation of the spectrum from 0, f >= 1/(2πs), and
// f <= 1/2). It needs images with one channel. Atoms of zeros are left out.
//
// Sources: D. Gabor, Theory of communication, 1946; D. L. Ringach, Spatial structure and symmetry of simple-cell receptive fields
// in macaque primary visual cortex, J. Neurophysiology 88, 2002.
func init() {
	register("gabor", "how many atoms are Gabor functions", Description{
		Measures: []Measure{
			{Name: "gabor_atoms", Better: Higher, Count: true, Doc: "atoms that a Gabor function describes: it explains at least 70 % of the energy of the atom, its " +
				"envelope is at most half of the image wide, and its wave is band-pass. Of images with one channel"},
			{Name: "gabor_fit", Better: Higher, Doc: "mean over atoms of the share of their energy that the best Gabor function explains"},
		},
		Reads: ReadsAtoms | ReadsPictures, ScaleFree: true, OnRequest: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		if len(s.Atoms.Shape) == 3 && s.Atoms.Shape[2] != 1 {
			return Fixed(NotApplicable("the atoms have several channels")), nil
		}
		count, fit, n := 0, 0.0, 0
		for j := range s.Atoms.Count {
			g, ok := fitGabor(s.Atoms.row(j), s.Atoms.Shape[0], s.Atoms.Shape[1])
			if !ok {
				continue
			}
			n++
			fit += g.fit
			if g.describes() {
				count++
			}
		}
		if n == 0 {
			return Fixed(NotApplicable("every atom is zero")), nil
		}
		return Fixed(Number(float64(count)), Number(fit/float64(n))), nil
	})
}

// gabor is a fitted Gabor function.
type gabor struct {
	row, column     float64 // centre
	along, across   float64 // widths
	angle, wave     float64 // direction, and cycles per pixel
	fit             float64 // share of the energy of the atom
	height, breadth int     // of the image
}

// describes reports whether the atom counts as a Gabor function.
func (g gabor) describes() bool {
	half := float64(min(g.height, g.breadth)) / 2
	inside := g.row >= 0 && g.column >= 0 && g.row <= float64(g.height-1) && g.column <= float64(g.breadth-1)
	return g.fit >= gaborFit && inside && g.along <= half && g.across <= half && g.wave <= 0.5 && 2*math.Pi*g.wave*g.along >= 1
}

// at returns the function with the parameters x: centre, logarithms of the widths, angle, logarithm of the frequency.
func (g gabor) at(x []float64) gabor {
	g.row, g.column, g.along, g.across, g.angle, g.wave = x[0], x[1], math.Exp(x[2]), math.Exp(x[3]), x[4], math.Exp(x[5])
	return g
}

// explains returns the share of the energy of an atom of energy 1 that the best amplitudes explain.
func (g gabor) explains(atom []float64) float64 {
	var cc, cs, ss, ca, sa float64 // products of the two waves and the atom
	sin, cos := math.Sincos(g.angle)
	for i, v := range atom {
		y, x := float64(i/g.breadth)-g.row, float64(i%g.breadth)-g.column
		u, w := x*cos+y*sin, y*cos-x*sin
		envelope := math.Exp(-0.5 * (u*u/(g.along*g.along) + w*w/(g.across*g.across)))
		s, c := math.Sincos(2 * math.Pi * g.wave * u)
		s, c = s*envelope, c*envelope
		cc, cs, ss, ca, sa = cc+c*c, cs+c*s, ss+s*s, ca+c*v, sa+s*v
	}
	if d := cc*ss - cs*cs; d > 1e-12*cc*ss {
		return (ca*ca*ss - 2*ca*sa*cs + sa*sa*cc) / d
	}
	if cc > 0 { // a wave that is too slow has no other phase
		return ca * ca / cc
	}
	return 0
}

// fitGabor returns the best Gabor function of an atom; ok is false for an atom of zeros.
func fitGabor(values []float32, height, breadth int) (best gabor, ok bool) {
	best.height, best.breadth = height, breadth
	atom, energy := vectors.Wide(values), 0.0
	for _, v := range atom {
		energy += v * v
	}
	if energy == 0 {
		return best, false
	}
	start := best
	for i := range atom {
		atom[i] /= math.Sqrt(energy)
		start.row += atom[i] * atom[i] * float64(i/breadth)
		start.column += atom[i] * atom[i] * float64(i%breadth)
	}
	width := math.Log(float64(min(height, breadth)) / 5)
	for _, w := range strongestWaves(atom, height, breadth) {
		x := []float64{start.row, start.column, width, width, w.angle, math.Log(w.wave)}
		problem := optimize.Problem{Func: func(x []float64) float64 {
			share := start.at(x).explains(atom)
			if math.IsNaN(share) {
				return 1
			}
			return 1 - share
		}}
		result, err := optimize.Minimize(problem, x, &optimize.Settings{FuncEvaluations: gaborCalls}, &optimize.NelderMead{SimplexSize: 0.4})
		if result == nil && err != nil {
			continue
		}
		if g := start.at(result.X); 1-result.F > best.fit {
			best, best.fit = g, 1-result.F
		}
	}
	return best, true
}

// strongestWaves returns the wave vectors of a grid at which the spectrum of an atom is largest, the largest first.
func strongestWaves(atom []float64, height, breadth int) []gabor {
	const angles, waves = 12, 8
	type peak struct {
		gabor
		power float64
	}
	var all []peak
	lowest := 0.5 / float64(min(height, breadth))
	for a := range angles {
		for f := range waves {
			g := gabor{angle: math.Pi * float64(a) / angles, wave: lowest + (0.5-lowest)*float64(f)/(waves-1)}
			sin, cos := math.Sincos(g.angle)
			var re, im float64
			for i, v := range atom {
				s, c := math.Sincos(2 * math.Pi * g.wave * (float64(i%breadth)*cos + float64(i/breadth)*sin))
				re, im = re+v*c, im+v*s
			}
			all = append(all, peak{g, re*re + im*im})
		}
	}
	slices.SortStableFunc(all, func(a, b peak) int { return cmp.Compare(b.power, a.power) })
	return lists.Map(all[:gaborStarts], func(p peak) gabor { return p.gabor })
}
