package baselines

import (
	"math"

	"tessera/kernel"
	"tessera/parallel/team"
)

// betaRule is Fevotte and Idier's for a beta-divergence of any exponent b, which never rises: with Y = max(HW, tiny),
//
//	W <- W * ((H'(X Y^(b-2)) / (H' Y^(b-1) + n (l1 + l2 W)))^g,   H likewise with W',
//	g = 1/(2-b) for b < 1,   1 for 1 <= b <= 2,   1/(b-1) for b > 2.
//
// Without penalties atoms get sum 1, and norm 1 for b = 2, where the divergence is half the squared error.
type betaRule struct {
	f         *factors
	exponent  float64
	penalties penalties

	atomsDown []float32   // H' Y^(b-1), k x p; H'(X Y^(b-2)) is the factors' target
	downs     *laneSums   // its sums
	images    [][]float32 // per lane: scratch of a block of images
	ownPart   float64     // the share of the divergence that X alone has
}

func (r *betaRule) prepare() float64 {
	f := r.f
	r.atomsDown, r.downs = make([]float32, f.units*f.pixels), newLaneSums(f.n, f.units*f.pixels)
	r.images = make([][]float32, laneCount(f.n))
	for i := range r.images {
		r.images[i] = make([]float32, min(blockSize, f.n)*f.pixels)
	}
	r.ownPart = f.sumLanes(func(i int) float64 { return ownDivergence(f.image(i), r.exponent) })
	return r.pass(false)
}

func (r *betaRule) improve() float64 {
	f, w := r.f, r.penalties
	n := float64(f.n)
	r.scale(f.atoms, f.target, r.atomsDown, n*w.l1Atoms, n*w.l2Atoms)
	switch {
	case w != none:
	case r.exponent == 2:
		f.unitAtoms()
	default:
		f.unitSums()
	}
	return r.pass(true)
}

// unitSums gives every atom sum 1 and its scale to its codes.
func (f *factors) unitSums() {
	ops := kernel.Float32()
	team.For(f.units, 1, func(j, _ int) {
		atom, codes := f.atoms[j*f.pixels:(j+1)*f.pixels], f.codes[j*f.n:(j+1)*f.n]
		if total := ops.Sum(atom); total > 0 {
			ops.DivScalar(atom, atom, total)
			ops.MulScalar(codes, codes, total)
		}
	})
}

// scale multiplies values by (up / (down + l1 + l2 values))^g.
func (r *betaRule) scale(values, up, down []float32, l1, l2 float64) {
	g := 1.0
	if r.exponent < 1 {
		g = 1 / (2 - r.exponent)
	} else if r.exponent > 2 {
		g = 1 / (r.exponent - 1)
	}
	team.For(len(values), 1<<12, func(from, to int) {
		for i := from; i < to; i++ {
			v := float64(values[i])
			d := float64(down[i]) + l1 + l2*v
			if !(v > 0 && d > 0) {
				continue
			}
			factor := float64(up[i]) / d
			if g != 1 {
				factor = math.Pow(factor, g)
			}
			values[i] = float32(v * factor)
		}
	})
}

// pass improves the codes where that is asked for, sums what the atoms' rule needs, and returns the objective.
func (r *betaRule) pass(improve bool) float64 {
	f, gemm := r.f, kernel.Float32().Gemm
	f.targets.reset()
	r.downs.reset()
	sums := make([]float64, laneCount(f.n))
	forLanes(f.n, func(lane, from, to int) {
		w, b, p := f.work[lane], to-from, f.pixels
		x, down := f.x[from*p:to*p], r.images[lane][:(to-from)*p]
		if improve {
			codes, up := gatherColumns(f.codes, f.n, f.units, from, to), f.decodeBlock(w, from, to)
			r.split(x, up, down)
			r.scaleCodes(codes, f.atoms, up, down, w.a, w.b, b)
			scatterColumns(f.codes, f.n, f.units, from, to, codes)
		}
		up := f.decodeBlock(w, from, to)
		sums[lane] += divergenceFrom(x, up, r.exponent)
		r.split(x, up, down)
		gemm(false, false, f.units, p, b, 1, f.codes[from:], f.n, up, p, 1, f.targets.sums[lane], p)
		gemm(false, false, f.units, p, b, 1, f.codes[from:], f.n, down, p, 1, r.downs.sums[lane], p)
	})
	f.targets.total(f.target)
	r.downs.total(r.atomsDown)
	mean := (sum(sums)+r.ownPart)/float64(f.n)/float64(f.pixels) + r.penalties.value(f)
	if r.exponent == 2 {
		mean *= 2
	}
	return mean
}

// scaleCodes is the rule for codes (k x n) of images whose X Y^(b-2) and Y^(b-1) are up and down.
func (r *betaRule) scaleCodes(codes, atoms, up, down, a, b []float32, n int) {
	gemm, k, p := kernel.Float32().Gemm, r.f.units, r.f.pixels
	gemm(false, true, k, n, p, 1, atoms, p, up, p, 0, a, n)
	gemm(false, true, k, n, p, 1, atoms, p, down, p, 0, b, n)
	r.scale(codes, a[:k*n], b[:k*n], float64(p)*r.penalties.l1Codes, float64(p)*r.penalties.l2Codes)
}

// split replaces y by x y^(b-2) and writes y^(b-1) into down.
func (r *betaRule) split(x, y, down []float32) {
	ops := kernel.Float32()
	ops.MaxScalar(y, y, tiny)
	switch r.exponent {
	case 2:
		copy(down, y)
		copy(y, x)
	case 1:
		ops.Div(y, x, y)
		for i := range down {
			down[i] = 1
		}
	default:
		for i, v := range y {
			power := math.Pow(float64(v), r.exponent-2)
			y[i], down[i] = float32(power*float64(x[i])), float32(power*float64(v))
		}
	}
}

// gatherColumns copies columns [from, to) of a (k x n).
func gatherColumns(a []float32, n, k, from, to int) []float32 {
	b := to - from
	columns := make([]float32, k*b)
	for j := range k {
		copy(columns[j*b:(j+1)*b], a[j*n+from:])
	}
	return columns
}

// scatterColumns writes them back.
func scatterColumns(a []float32, n, k, from, to int, columns []float32) {
	b := to - from
	for j := range k {
		copy(a[j*n+from:j*n+to], columns[j*b:(j+1)*b])
	}
}

// ownDivergence is the sum of the terms of the beta-divergence that have x alone, the others being divergenceFrom.
func ownDivergence(x []float32, b float64) float64 {
	var sum float64
	for _, value := range x {
		switch v := float64(value); {
		case v == 0:
		case b == 1:
			sum += v*math.Log(v) - v
		case b == 0:
			sum += -math.Log(v) - 1
		default:
			sum += math.Pow(v, b) / (b * (b - 1))
		}
	}
	return sum
}

// divergenceFrom is the sum of the other terms, of max(y, tiny).
func divergenceFrom(x, y []float32, b float64) float64 {
	var sum float64
	for i, value := range y {
		v, u := max(float64(value), tiny), float64(x[i])
		switch b {
		case 2:
			sum += v * (v/2 - u)
		case 1:
			sum += v - u*math.Log(v)
		case 0:
			sum += u/v + math.Log(v)
		default:
			sum += math.Pow(v, b-1) * (v/b - u/(b-1))
		}
	}
	return sum
}

// encode runs the codes' rule alone until it changes the codes of a block by less than 1e-3 of their norm. It starts from the
// codes of the least squared error plus a hundredth of their mean, for the rule keeps zeros.
func (r *betaRule) encode(images []float32) []float32 {
	const (
		precision = 1e-3
		rounds    = 200
	)
	k, p, w := r.f.units, r.f.pixels, r.penalties
	images = raise(images, r.f.floor)
	codes := encodePenalised(images, r.f.atoms, k, p, float64(p)*w.l1Codes, float64(p)*w.l2Codes, 1e-2)
	team.For(len(images)/p, encodeBlock, func(from, to int) {
		ops, n, x := kernel.Float32(), to-from, images[from*p:to*p]
		y, down, h := make([]float32, n*p), make([]float32, n*p), transpose(codes[from*k:to*k], n, k)
		before, a, b := make([]float32, k*n), make([]float32, k*n), make([]float32, k*n)
		ops.AddScalar(h, h, 0.01*ops.Sum(h)/float32(k*n)+tiny)
		for range rounds {
			copy(before, h)
			ops.Gemm(true, false, n, p, k, 1, h, n, r.f.atoms, p, 0, y, p)
			r.split(x, y, down)
			r.scaleCodes(h, r.f.atoms, y, down, a, b, n)
			if ops.SquaredDistance(h, before) <= precision*precision*ops.SumSquares(h) {
				break
			}
		}
		copy(codes[from*k:to*k], transpose(h, k, n))
	})
	return codes
}
