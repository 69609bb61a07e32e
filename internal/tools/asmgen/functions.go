package main

import "math"

// The exponential functions write x = n ln 2 + r with |r| <= ln(2)/2 and exp(r) - 1 = r + r^2 q(r); the logarithms
// write 1+x = 2^e (1+f) with f in [-1/3, 1/3) and log(1+f) = f - f^2/2 + f^3 p(f). Both polynomials are minimax fits,
// made for this file, of the relative error of exp(r)-1 (1.4e-8) and of log(1+f) (4.7e-9).
var (
	expPolynomial = []float64{0.499999981496, 0.166665434244, 0.0416672007304, 0.0083665471194, 0.00138825152132}
	logPolynomial = []float64{0.333332159826, -0.24999797673, 0.200104059112, -0.166804873483, 0.140058691037,
		-0.12184261017, 0.139844363494, -0.128916850386}
	ln2High = float64(float32(math.Ln2))
	ln2Low  = math.Ln2 - ln2High
)

// reduceExp returns n and exp(r)-1.
func (a *asm) reduceExp(x vec) (n, rest vec) {
	n = a.round(a.mul(x, a.constant(math.Log2E)))
	r := a.fnma(n, a.constant(ln2High), x)
	r = a.fnma(n, a.constant(ln2Low), r)
	q := a.polynomial(r, expPolynomial...)
	return n, a.fma(a.mul(q, r), r, r)
}

// powerOfTwo returns 2^n for integers n in int32 with -126 <= n <= 127.
func (a *asm) powerOfTwo(n vec) vec { return a.shiftLeft(a.addInt(n, a.word(127)), 23) }

// exp returns exp(x). Outside of the bounds the result is 0 or infinite.
func (a *asm) exp(x vec) vec {
	return a.expBelow(a.noMore(x, 89))
}

// expBelow returns exp(x) for x <= 89.
func (a *asm) expBelow(x vec) vec {
	n, rest := a.reduceExp(a.noLess(x, -104))
	return a.scale(a.add(rest, a.constant(1)), n)
}

// expm1 returns 2^n (rest+1) - 1, computed at half its size so that n = 128 does not overflow. For n = 0 the result is rest,
// which preserves denormals. The sign is copied, which preserves -0.
func (a *asm) expm1(x vec) vec {
	n, rest := a.reduceExp(a.noLess(a.noMore(x, 89), -30))
	half := a.powerOfTwo(a.addInt(a.toInt(n), a.word(0xffffffff)))
	y := a.fma(half, rest, a.sub(half, a.constant(0.5)))
	y = a.choose(a.compare(equal, n, a.constant(0)), rest, a.add(y, y))
	return a.or(y, a.sign(x))
}

func (a *asm) sigmoid(x vec) vec {
	e := a.expBelow(a.or(x, a.word(1<<31)))
	top := a.choose(a.compare(lessThan, x, a.constant(0)), e, a.constant(1))
	return a.div(top, a.add(e, a.constant(1)))
}

func (a *asm) tanh(x vec) vec {
	negative := a.or(x, a.word(1<<31))
	n, rest := a.reduceExp(a.noLess(a.add(negative, negative), -30))
	power := a.powerOfTwo(a.toInt(n))
	t := a.fma(power, rest, a.sub(power, a.constant(1)))
	return a.or(a.div(a.abs(t), a.add(t, a.constant(2))), a.sign(x))
}

// softplus returns max(x, 0) + log(1+exp(-|x|)).
func (a *asm) softplus(x vec) vec {
	e := a.expBelow(a.or(x, a.word(1<<31)))
	f, exponent := a.reduceLog1p(e)
	return a.add(a.larger(a.constant(0), x), a.logOf(f, exponent))
}

// logOf returns log(2^e (1+f)).
func (a *asm) logOf(f, e vec) vec {
	y := a.polynomial(f, append([]float64{-0.5}, logPolynomial...)...)
	y = a.fma(y, a.mul(f, f), a.mul(e, a.constant(ln2Low)))
	return a.fma(e, a.constant(ln2High), a.add(y, f))
}

// split returns e in int32 and m in [2/3, 4/3) with x = 2^e m, for normal x > 0.
func (a *asm) split(x vec) (e, m vec) {
	e = a.shiftRight(a.subInt(x, a.word(0x3f2aaaab)), 23)
	return e, a.subInt(x, a.shiftLeft(e, 23))
}

// log returns log(x). Denormals are multiplied by 2^23 first.
func (a *asm) log(x vec) vec {
	small := a.compare(lessThan, x, a.constant(0x1p-126))
	e, m := a.split(a.choose(small, a.mul(x, a.constant(0x1p23)), x))
	exponent := a.add(a.toFloat(e), a.where(small, a.constant(-23)))
	y := a.logOf(a.sub(m, a.constant(1)), exponent)
	return a.logEdges(y, x, 0)
}

// reduceLog1p returns f and e (in float32) for 1+x, with f computed from x, so that the rounding of 1+x has no effect. For x
// >= 2^24 rounding removes the 1 in any case.
func (a *asm) reduceLog1p(x vec) (f, exponent vec) {
	e, m := a.split(a.add(x, a.constant(1)))
	exponent = a.toFloat(e)
	power := a.shiftLeft(a.subInt(a.word(127), e), 23)
	f = a.fma(x, power, a.sub(power, a.constant(1)))
	return a.choose(a.compare(moreThan, exponent, a.constant(24)), a.sub(m, a.constant(1)), f), exponent
}

// log1p returns log(1+x). It copies the sign, which preserves -0.
func (a *asm) log1p(x vec) vec {
	y := a.logOf(a.reduceLog1p(x))
	return a.logEdges(a.or(y, a.sign(x)), x, -1)
}

// logEdges sets the values of a logarithm at its pole, below the pole, at infinity and at NaN.
func (a *asm) logEdges(y, x vec, pole float64) vec {
	infinity := a.constant(math.Inf(1))
	y = a.choose(a.compare(equal, x, infinity), infinity, y)
	y = a.choose(a.compare(equal, x, a.constant(pole)), a.constant(math.Inf(-1)), y)
	return a.choose(a.compare(notAtLeast, x, a.constant(pole)), a.word(0x7fc00000), y)
}
