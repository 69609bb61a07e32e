package main

import (
	"fmt"
	"math"
)

// Functions of float32 that are computed in float64, by the operations of package math in their order, so that the results
// have the same bytes as those of plain Go: math.Exp (in assembly, with FMA) and math.Erfc (in Go, without).

// inDouble applies f to both halves of x in float64 and rounds the results to float32.
func (a *asm) inDouble(x vec, f func(vec) vec) vec {
	halves := a.widened(x)
	return a.rounded(f(halves[0]), f(halves[1]))
}

// dividedBy returns x/y, correctly rounded, for a constant y: an estimate of the quotient and one correction (Markstein 1990).
func (a *asm) dividedBy(x vec, y float64) vec {
	q := a.mulD(x, a.double(1/y))
	return a.fmaD(a.fnmaD(q, a.double(y), x), a.double(1/y), q)
}

// expD returns math.Exp(x) for -700 <= x <= 700: x = n ln 2 + 16 r, exp(r) by its series, squared four times.
func (a *asm) expD(x vec) vec {
	n, scale := a.wholeD(a.mulD(x, a.double(math.Log2E)))
	r := a.fnmaD(n, a.double(0.69314718055966295651160180568695068359375), x)
	r = a.fnmaD(n, a.double(0.28235290563031577122588448175013436025525412068e-12), r)
	r = a.mulD(r, a.double(0.0625))
	sum := a.polynomialD(r, 1, 0.5, 1.6666666666666666667e-1, 4.1666666666666666667e-2, 8.3333333333333333333e-3,
		1.3888888888888888889e-3, 1.9841269841269841270e-4, 2.4801587301587301587e-5)
	y := a.mulD(r, sum) // exp(r) - 1
	for range 3 {
		y = a.mulD(y, a.addD(y, a.double(2)))
	}
	return scale(a.fmaD(a.addD(y, a.double(2)), y, a.double(1)))
}

// expRounded returns math.Exp(x), rounded. Outside of the bounds it is 0 or infinite in float32.
func (a *asm) expRounded(x vec) vec {
	return a.inDouble(x, func(x vec) vec {
		return a.expD(a.noMoreD(a.noLessD(x, -700), 700))
	})
}

// normalPDF returns math.Exp(-x*x/2) / math.Sqrt(2*math.Pi), rounded.
func (a *asm) normalPDF(x vec) vec {
	return a.inDouble(x, func(x vec) vec {
		y := a.mulD(a.mulD(x, x), a.double(-0.5))
		return a.dividedBy(a.expD(a.noLessD(y, -700)), math.Sqrt(2*math.Pi))
	})
}

const erx = 8.45062911510467529297e-01 // erf(1), as math.Erfc has it

// erfcP and erfcQ have the coefficients of the fractions P/Q of math.Erfc for |x| < 0.84375, < 1.25, < 1/0.35 and beyond.
var erfcP = [4][]float64{
	{1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02, -5.77027029648944159157e-03, -2.37630166566501626084e-05},
	{-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01, 3.18346619901161753674e-01, -1.10894694282396677476e-01,
		3.54783043256182359371e-02, -2.16637559486879084300e-03},
	{-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01, -6.23753324503260060396e+01, -1.62396669462573470355e+02,
		-1.84605092906711035994e+02, -8.12874355063065934246e+01, -9.81432934416914548592e+00},
	{-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01, -1.60636384855821916062e+02, -6.37566443368389627722e+02,
		-1.02509513161107724954e+03, -4.83519191608651397019e+02},
}

var erfcQ = [4][]float64{
	{1, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03, 1.32494738004321644526e-04, -3.96022827877536812320e-06},
	{1, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02, 1.26171219808761642112e-01, 1.36370839120290507362e-02,
		1.19844998467991074170e-02},
	{1, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02, 6.45387271733267880336e+02, 4.29008140027567833386e+02,
		1.08635005541779435134e+02, 6.57024977031928170135e+00, -6.04244152148580987438e-02},
	{1, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03, 3.19985821950859553908e+03, 2.55305040643316442583e+03,
		4.74528541206955367215e+02, -2.24409524465858183362e+01},
}

// central has the coefficients c of (Φ(x) - 1/2) / x = Σ c_k t^k, t = 2x²/centralEnd² - 1, for |x| <= centralEnd: the polynomial through the
// 23 Chebyshev nodes. Its error, times x, and that of math.Erfc are less than 3e-16; centralError is more than both together.
var central = []float64{
	0.15690499652647805, -0.07718990270977266, 0.05469648203761689, -0.04018724451941182, 0.028338124400365414, -0.018593275974917802,
	0.011212649696633945, -0.006194548677630256, 0.003138694122507478, -0.0014631811913452973, 0.0006300694168414339, -0.00025167873114570347,
	9.364109581345346e-05, -3.2580265220029264e-05, 1.0638379499078112e-05, -3.27019848247418e-06, 9.49909729299863e-07,
	-2.6242501569764177e-07, 6.850613097841592e-08, -1.6285748684388447e-08, 3.892858746466173e-09, -1.1857064212325057e-09,
	2.525610380001576e-10,
}

const centralEnd, centralError = 4.5, 1e-15

// normalCDF returns math.Erfc(-x/math.Sqrt2) / 2, rounded. Near 0 a polynomial is faster. If all numbers within its error have the same rounded
// value, this is the rounded value of math.Erfc, too; if not, which happens about once in a million elements near 0, the whole vector is computed as math.Erfc does.
func (a *asm) normalCDF(x vec) vec {
	result, slow, end := a.fresh(), a.label("slow"), a.label("done")
	a.skipIf(a.compare(notAtMost, a.abs(x), a.constant(centralEnd)), slow)
	var low, high [2]vec
	for i, x := range a.widened(x) {
		t := a.fmaD(a.mulD(x, x), a.double(2/(centralEnd*centralEnd)), a.double(-1))
		sum := a.hornerD(a.polynomialD(t, central...), x, a.double(0.5))
		low[i], high[i] = a.subD(sum, a.double(centralError)), a.addD(sum, a.double(centralError))
	}
	a.set(result, a.rounded(low[:]...))
	a.skipIf(a.compare(notEqual, a.rounded(high[:]...), result), slow)
	a.jump(end)
	a.Label(slow)
	a.set(result, a.normalCDFByErfc(x))
	a.Label(end)
	return result
}

// normalCDFByErfc does the operations of math.Erfc in their order. Each element takes its branch's polynomials; one vector may have elements of all
// branches. The tail costs two exponentials and two divisions, and is skipped if no element is in it.
func (a *asm) normalCDFByErfc(x vec) vec {
	return a.inDouble(x, func(x vec) vec {
		absolute := a.andD(x, a.double(math.Float64frombits(1<<63-1)))
		u := a.dividedBy(a.noMoreD(absolute, 40), math.Sqrt2) // beyond 40 nothing changes; NaN remains NaN
		middle, tail := a.compareD(atLeast, u, a.double(0.84375)), a.compareD(atLeast, u, a.double(1.25))
		branch := a.branch(middle, tail, a.compareD(atLeast, u, a.double(1/0.35)))
		right := a.compareD(moreThan, x, a.double(0))

		square := a.mulD(u, u)
		s := a.copyOf(a.chooseD(middle, a.subD(u, a.double(1)), square))
		noTail := a.label("noTail")
		a.skipUnless(tail, noTail)
		a.setD(s, a.chooseD(tail, a.divD(a.double(1), square), s))
		a.Label(noTail)
		fraction := a.divD(a.picked(branch, s, "erfcP", erfcP), a.picked(branch, s, "erfcQ", erfcQ))

		product := a.mulD(u, fraction)
		near := a.chooseD(a.compareD(lessThan, u, a.double(0.25)), a.addD(u, product),
			a.addD(a.double(0.5), a.addD(product, a.subD(u, a.double(0.5)))))
		term := a.chooseD(middle, fraction, near)
		above := a.addD(a.chooseD(middle, a.double(1+erx), a.double(1)), term)
		below := a.subD(a.chooseD(middle, a.double(1-erx), a.double(1)), term)
		y := a.copyOf(a.chooseD(right, above, below))
		end := a.label("noTail")
		a.skipUnless(tail, end)
		z := a.andD(u, a.double(math.Float64frombits(0xffffffff00000000)))
		exponent := a.subD(a.mulD(a.xorD(z, a.double(math.Copysign(0, -1))), z), a.double(0.5625))
		first := a.expD(a.noLessD(exponent, -700))
		second := a.expD(a.addD(a.mulD(a.subD(z, u), a.addD(z, u)), fraction))
		far := a.divD(a.mulD(first, second), u)
		a.setD(y, a.chooseD(tail, a.chooseD(right, a.subD(a.double(2), far), far), y))
		a.Label(end)
		return a.mulD(y, a.double(0.5))
	})
}

// picked evaluates the polynomial of each element's branch by Horner's rule without FMA. Missing coefficients are 0, which changes
// no result.
func (a *asm) picked(b branches, s vec, name string, c [4][]float64) vec {
	degree := 0
	for _, list := range c {
		degree = max(degree, len(list)-1)
	}
	var sum vec
	for k := degree; k >= 0; k-- {
		var each [4]float64
		for i, list := range c {
			if k < len(list) {
				each[i] = list[k]
			}
		}
		here := a.lookup(b, fmt.Sprintf("%s%d", name, k), each)
		if sum == nil {
			sum = here
			continue
		}
		sum = a.addD(a.mulD(sum, s), here)
	}
	return sum
}
