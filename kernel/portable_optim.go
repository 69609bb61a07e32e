package kernel

import "math"

var portableSteps = stepSet{
	name: "portable", sgd: sgdPortable, sgdMomentum: sgdMomentumPortable, adam: adamPortable, adamW: adamWPortable,
	adadelta: adadeltaPortable, adagrad: adagradPortable, rmsProp: rmsPropPortable, rmsPropMomentum: rmsPropMomentumPortable,
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func sgdPortable(w, g []float32, lr, decay float32) {
	n := min(len(w), len(g))
	w, g = w[:n], g[:n]
	for i, d := range g {
		w[i] -= lr * (d + decay*w[i])
	}
}

func sgdMomentumPortable(w, g, buf []float32, lr, momentum, decay, own, buffered float32) {
	n := min(len(w), len(g), len(buf))
	w, g, buf = w[:n], g[:n], buf[:n]
	for i, d := range g {
		d += decay * w[i]
		buf[i] = momentum*buf[i] + d
		w[i] -= lr * (own*d + buffered*buf[i])
	}
}

func adamPortable(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, decay float32) {
	n := min(len(w), len(g), len(m), len(v))
	w, g, m, v = w[:n], g[:n], m[:n], v[:n]
	for i, d := range g {
		d += decay * w[i]
		m[i] = beta1*m[i] + rest1*d
		v[i] = beta2*v[i] + rest2*d*d
		w[i] -= step * m[i] / (sqrt32(v[i])*scale + eps)
	}
}

func adamWPortable(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, keep float32) {
	n := min(len(w), len(g), len(m), len(v))
	w, g, m, v = w[:n], g[:n], m[:n], v[:n]
	for i, d := range g {
		m[i] = beta1*m[i] + rest1*d
		v[i] = beta2*v[i] + rest2*d*d
		w[i] = keep*w[i] - step*m[i]/(sqrt32(v[i])*scale+eps)
	}
}

func adadeltaPortable(w, g, sq, acc []float32, lr, rho, rest, eps, decay float32) {
	n := min(len(w), len(g), len(sq), len(acc))
	w, g, sq, acc = w[:n], g[:n], sq[:n], acc[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = rho*sq[i] + rest*d*d
		u := d * sqrt32((acc[i]+eps)/(sq[i]+eps))
		w[i] -= lr * u
		acc[i] = rho*acc[i] + rest*u*u
	}
}

func adagradPortable(w, g, sum []float32, lr, eps, decay float32) {
	n := min(len(w), len(g), len(sum))
	w, g, sum = w[:n], g[:n], sum[:n]
	for i, d := range g {
		d += decay * w[i]
		sum[i] += d * d
		w[i] -= lr * d / (sqrt32(sum[i]) + eps)
	}
}

func rmsPropPortable(w, g, sq []float32, lr, alpha, rest, eps, decay float32) {
	n := min(len(w), len(g), len(sq))
	w, g, sq = w[:n], g[:n], sq[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = alpha*sq[i] + rest*d*d
		w[i] -= lr * d / (sqrt32(sq[i]) + eps)
	}
}

func rmsPropMomentumPortable(w, g, sq, buf []float32, lr, alpha, rest, eps, decay, momentum float32) {
	n := min(len(w), len(g), len(sq), len(buf))
	w, g, sq, buf = w[:n], g[:n], sq[:n], buf[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = alpha*sq[i] + rest*d*d
		buf[i] = momentum*buf[i] + d/(sqrt32(sq[i])+eps)
		w[i] -= lr * buf[i]
	}
}
