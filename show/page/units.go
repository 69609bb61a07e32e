package page

import (
	"cmp"
	"math"
	"slices"

	"tessera/kernel"
	"tessera/metrics"
)

// Limits of what a page shows of one run.
const (
	mostUnits      = 400     // in the grid
	mostImages     = 10_000  // for pictures and for the statistics of units, codes and heads
	mostValues     = 1 << 26 // of these images, for large ones
	mostCorrelated = 1 << 22 // values of codes in the correlations of units
	topImages      = 8       // the images that use a unit most
	topNeighbours  = 6
	bins           = 24 // of a histogram
	activeShare    = 0.01
)

// usage is what a set of codes says of every unit. The use of unit j by image i is its contribution h_ij |w_j|_2 where the code
// weighs atoms, else the activation h_ij.
type usage struct {
	n, k  int
	use   []float32 // n x k
	each  []unitUse
	byOne [][]float64 // mean use by class, classes x k; nil without labels
}

// unitUse describes the use of one unit.
type unitUse struct {
	active    float64 // share of images in which |use| is above 1 % of the largest of the image
	mean, max float64 // of the use
	low, high float64 // ends of the histogram
	counts    []int   // images by their use, without those in which the unit is not active
	top       []int   // images that use it most, the first one most
	near      []neighbour
}

// neighbour is another unit.
type neighbour struct {
	unit        int
	correlation float64 // of the uses over the images
}

// usageOf measures codes of k units; scales multiply them, nil for none.
func usageOf(codes []float32, k int, scales []float64, labels []int, classes int) *usage {
	u := &usage{n: len(codes) / k, k: k, use: codes, each: make([]unitUse, k)}
	if scales != nil {
		u.use = make([]float32, len(codes))
		for i, v := range codes {
			u.use[i] = float32(float64(v) * scales[i%k])
		}
	}
	largest := make([]float64, u.n)
	for i := range largest {
		for _, v := range u.use[i*k : (i+1)*k] {
			largest[i] = max(largest[i], math.Abs(float64(v)))
		}
	}
	for j := range k {
		u.each[j] = u.unit(j, largest)
	}
	u.correlate()
	if classes > 0 {
		u.classes(labels, classes)
	}
	return u
}

// of is the use of unit j by image i.
func (u *usage) of(i, j int) float64 { return float64(u.use[i*u.k+j]) }

// unit describes one unit; largest is the largest |use| of every image.
func (u *usage) unit(j int, largest []float64) unitUse {
	one := unitUse{low: math.Inf(1), high: math.Inf(-1), counts: make([]int, bins)}
	var active []float64
	for i := range u.n {
		v := u.of(i, j)
		one.mean += v / float64(u.n)
		if math.Abs(v) > activeShare*largest[i] {
			active = append(active, v)
			one.low, one.high = min(one.low, v), max(one.high, v)
			one.top = u.withLargest(one.top, i, j)
		}
	}
	one.active = float64(len(active)) / float64(u.n)
	if len(active) == 0 {
		return unitUse{counts: one.counts, mean: one.mean}
	}
	one.low = min(one.low, 0)
	for _, v := range active {
		at := int(float64(bins) * (v - one.low) / (one.high - one.low))
		one.counts[min(max(at, 0), bins-1)]++ // all values may be equal
	}
	one.max = u.of(one.top[0], j)
	return one
}

// withLargest adds image i to the images that use unit j most; of equal ones the first counts.
func (u *usage) withLargest(top []int, i, j int) []int {
	size := func(i int) float64 { return math.Abs(u.of(i, j)) }
	at := len(top)
	for at > 0 && size(i) > size(top[at-1]) {
		at--
	}
	if at == topImages {
		return top
	}
	top = slices.Insert(top, at, i)
	return top[:min(topImages, len(top))]
}

// correlate finds the units whose uses are most correlated (Pearson), among those that are shown.
func (u *usage) correlate() {
	k := min(u.k, mostUnits)
	n := min(u.n, mostCorrelated/k)
	if n < 3 {
		return
	}
	z := make([]float64, n*k)
	for j := range k {
		mean, square := 0.0, 0.0
		for i := range n {
			mean += u.of(i, j) / float64(n)
		}
		for i := range n {
			d := u.of(i, j) - mean
			z[i*k+j] = d
			square += d * d
		}
		for i := range n {
			if square > 0 {
				z[i*k+j] /= math.Sqrt(square)
			}
		}
	}
	c := make([]float64, k*k)
	kernel.Float64().Gemm(true, false, k, k, n, 1, z, k, z, k, 0, c, k)
	for j := range k {
		var near []neighbour
		for other := range k {
			if v := c[j*k+other]; other != j && v > 0 && u.each[j].active > 0 {
				near = append(near, neighbour{other, v})
			}
		}
		slices.SortStableFunc(near, func(a, b neighbour) int { return cmp.Compare(b.correlation, a.correlation) })
		u.each[j].near = near[:min(topNeighbours, len(near))]
	}
}

// classes computes the mean use of every unit by class.
func (u *usage) classes(labels []int, classes int) {
	sums, counts := make([][]float64, classes), make([]float64, classes)
	for c := range sums {
		sums[c] = make([]float64, u.k)
	}
	for i := range u.n {
		c := labels[i]
		if c < 0 || c >= classes {
			continue
		}
		counts[c]++
		for j := range u.k {
			sums[c][j] += math.Abs(u.of(i, j))
		}
	}
	for c := range sums {
		for j := range sums[c] {
			sums[c][j] /= max(1, counts[c])
		}
	}
	u.byOne = sums
}

// lengths are the lengths |w_j|_2 of atoms.
func lengths(a *metrics.Atoms) []float64 {
	all := make([]float64, a.Count)
	for j := range all {
		for _, v := range atom(a, j) {
			all[j] += float64(v) * float64(v)
		}
		all[j] = math.Sqrt(all[j])
	}
	return all
}

// atom is the image of atom j.
func atom(a *metrics.Atoms, j int) []float32 { return a.Values[j*a.Pixels() : (j+1)*a.Pixels()] }

// cosine of two atoms, 0 where one of them is zero.
func cosine(a *metrics.Atoms, i, j int) float64 {
	dot, one, other := 0.0, 0.0, 0.0
	x, y := atom(a, i), atom(a, j)
	for p := range x {
		dot += float64(x[p]) * float64(y[p])
		one += float64(x[p]) * float64(x[p])
		other += float64(y[p]) * float64(y[p])
	}
	if one == 0 || other == 0 {
		return 0
	}
	return dot / math.Sqrt(one*other)
}
