package sae

import (
	"math"
	"slices"

	"tessera/data"
)

// normalise folds what an architecture of the file's settings does besides the formulas of the package into the tensors.
func (d *Dictionary) normalise(s settings, centred bool) {
	if s.Rescaled { // the code is measured in lengths of atoms
		norms := make([]float32, d.Units)
		for j := range norms {
			sum := 0.0
			for _, v := range d.tensors["W_dec"].Data[j*d.Inputs : (j+1)*d.Inputs] {
				sum += float64(v) * float64(v)
			}
			norms[j] = float32(math.Sqrt(sum))
		}
		d.scaleUnits(norms)
		d.scaleAtoms(norms, -1)
	}
	d.change("threshold", func(_ int, v float64) float64 { return max(0, v) })
	if s.Factored {
		d.scaleAtoms(d.tensors["finetuning_scaling_factor"].Data, 1)
	}
	if centred {
		d.shift(d.tensors["b_dec"].Data, 1)
	}
}

// scaleUnits multiplies what the encoder computes for each unit by a factor, before the selection.
func (d *Dictionary) scaleUnits(by []float32) {
	d.change("W_enc", func(at int, v float64) float64 { return v * float64(by[at%d.Units]) })
	d.change("b_enc", func(j int, v float64) float64 { return v * float64(by[j]) })
}

// scaleAtoms multiplies each atom by a power of a factor; atoms whose factor is 0 stay.
func (d *Dictionary) scaleAtoms(by []float32, power float64) {
	d.change("W_dec", func(at int, v float64) float64 {
		if f := float64(by[at/d.Inputs]); f != 0 {
			return v * math.Pow(f, power)
		}
		return v
	})
}

// shift changes the biases such that the encoder of x computes what it has computed of x - sign by.
func (d *Dictionary) shift(by []float32, sign float64) {
	w, offsets := d.tensors["W_enc"].Data, make([]float64, d.Units)
	for i, b := range by {
		for j, v := range w[i*d.Units : (i+1)*d.Units] {
			offsets[j] -= sign * float64(b) * float64(v)
		}
	}
	d.moveUnits(func(j int) float64 { return offsets[j] })
}

// moveUnits adds a number to x W_enc of each unit.
func (d *Dictionary) moveUnits(by func(j int) float64) {
	moved := func(j int, v float64) float64 { return v + by(j) }
	if r, gated := d.tensors["r_mag"]; gated {
		d.change("b_gate", moved)
		d.change("b_mag", func(j int, v float64) float64 { return v + math.Exp(float64(r.Data[j]))*by(j) })
		return
	}
	d.change("b_enc", moved)
}

// change replaces every value of a tensor, if there is one.
func (d *Dictionary) change(name string, f func(at int, v float64) float64) {
	t, ok := d.tensors[name]
	if !ok {
		return
	}
	t.Data = slices.Clone(t.Data)
	for i, v := range t.Data {
		t.Data[i] = float32(f(i, float64(v)))
	}
	d.tensors[name] = t
}

// transposed returns the transpose of a matrix; other tensors as they are.
func transposed(t data.Tensor) data.Tensor {
	if len(t.Shape) != 2 {
		return t
	}
	n, m := t.Shape[0], t.Shape[1]
	out := data.Tensor{Shape: []int{m, n}, Data: make([]float32, len(t.Data))}
	for i, v := range t.Data {
		out.Data[i%m*n+i/m] = v
	}
	return out
}
