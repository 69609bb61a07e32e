package main

import (
	"fmt"
	"strings"
)

// optimizerStep is one pass over a parameter w, its gradient g and its state, with scalars of kernel.stepSet.
type optimizerStep struct {
	name    string // name of the field of kernel.stepSet
	state   string
	scalars string
	// body returns the new w and state from w, g and the state.
	body func(a *asm, x []vec, s []vec) []vec
}

var optimizerSteps = []optimizerStep{
	{"sgd", "", "lr decay", func(a *asm, x, s []vec) []vec {
		return []vec{a.fnma(s[0], a.fma(s[1], x[0], x[1]), x[0])}
	}},
	{"sgdMomentum", "buf", "lr momentum decay own buffered", func(a *asm, x, s []vec) []vec {
		d := a.fma(s[2], x[0], x[1])
		buf := a.fma(s[1], x[2], d)
		return []vec{a.fnma(s[0], a.fma(s[4], buf, a.mul(s[3], d)), x[0]), buf}
	}},
	{"adam", "m v", "beta1 rest1 beta2 rest2 step scale eps decay", func(a *asm, x, s []vec) []vec {
		update, m, v := a.moments(a.fma(s[7], x[0], x[1]), x[2], x[3], s)
		return []vec{a.sub(x[0], update), m, v}
	}},
	{"adamW", "m v", "beta1 rest1 beta2 rest2 step scale eps keep", func(a *asm, x, s []vec) []vec {
		update, m, v := a.moments(x[1], x[2], x[3], s)
		return []vec{a.sub(a.mul(s[7], x[0]), update), m, v}
	}},
	{"adadelta", "sq acc", "lr rho rest eps decay", func(a *asm, x, s []vec) []vec {
		d := a.fma(s[4], x[0], x[1])
		sq := a.average(x[2], d, s[1], s[2])
		u := a.mul(d, a.sqrt(a.div(a.add(x[3], s[3]), a.add(sq, s[3]))))
		return []vec{a.fnma(s[0], u, x[0]), sq, a.average(x[3], u, s[1], s[2])}
	}},
	{"adagrad", "sum", "lr eps decay", func(a *asm, x, s []vec) []vec {
		d := a.fma(s[2], x[0], x[1])
		sum := a.fma(d, d, x[2])
		return []vec{a.sub(x[0], a.div(a.mul(s[0], d), a.add(a.sqrt(sum), s[1]))), sum}
	}},
	{"rmsProp", "sq", "lr alpha rest eps decay", func(a *asm, x, s []vec) []vec {
		d := a.fma(s[4], x[0], x[1])
		sq := a.average(x[2], d, s[1], s[2])
		return []vec{a.sub(x[0], a.div(a.mul(s[0], d), a.add(a.sqrt(sq), s[3]))), sq}
	}},
	{"rmsPropMomentum", "sq buf", "lr alpha rest eps decay momentum", func(a *asm, x, s []vec) []vec {
		d := a.fma(s[4], x[0], x[1])
		sq := a.average(x[2], d, s[1], s[2])
		buf := a.fma(s[5], x[3], a.div(d, a.add(a.sqrt(sq), s[3])))
		return []vec{a.fnma(s[0], buf, x[0]), sq, buf}
	}},
}

func (a *asm) average(old, x, keep, rest vec) vec {
	return a.fma(a.mul(rest, x), x, a.mul(keep, old))
}

// moments returns Adam's update of w and the new moments.
func (a *asm) moments(d, m, v vec, s []vec) (update, m2, v2 vec) {
	m2 = a.fma(s[1], d, a.mul(s[0], m))
	v2 = a.average(v, d, s[2], s[3])
	return a.div(a.mul(s[4], m2), a.fma(a.sqrt(v2), s[5], s[6])), m2, v2
}

func emitOptimizers(m machine) {
	a := &asm{m}
	for _, o := range optimizerSteps {
		o.emit(a)
	}
}

func (o optimizerStep) emit(a *asm) {
	states, scalars := strings.Fields(o.state), strings.Fields(o.scalars)
	name := a.kernelName(o.name)
	a.function(name, fmt.Sprintf("func(%s []float32, %s float32)",
		strings.Join(append([]string{"w", "g"}, states...), ", "), strings.Join(scalars, ", ")))
	var s []vec
	for _, scalar := range scalars {
		s = append(s, a.scalar(scalar))
	}
	arrays := []array{{"w", true, true}, {"g", true, false}}
	for _, state := range states {
		arrays = append(arrays, array{state, true, true})
	}
	restore := a.flushDenormals()
	a.sweep(arrays, 1, func(in []vec) []vec { return o.body(a, in, s) })
	restore()
	a.done()
}
