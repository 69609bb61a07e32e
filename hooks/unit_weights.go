// This file finds and changes the weights of single units, for the hooks revive and background.

package hooks

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/lists"
)

// unitWeights are the weights of the units of a one-layer encoder, and of the first decoder layer if it is a dense layer from the
// units to the pixels.
type unitWeights struct {
	training               Training
	encoder, bias, decoder *Parameter   // bias and decoder are nil if there are none that can change
	perUnit                []*Parameter // other parameters of the encoder with one value per unit, such as thresholds
	tied                   bool         // the encoder's weights are the atoms: the decoder has none
	units                  int
}

// unitWeightsOf finds the weights of a training's model.
func unitWeightsOf(t Training) (*unitWeights, error) {
	u := &unitWeights{training: t}
	var err error
	if u.encoder, err = reviveable(t.Parameters("encoder.*.weight")); err != nil {
		return nil, err
	}
	u.units = u.encoder.Shape[1]
	for _, p := range t.Parameters("encoder.*") {
		if len(p.Data) == u.units && p.Trainable && p != u.encoder && !strings.HasSuffix(p.Path, ".bias") {
			u.perUnit = append(u.perUnit, p)
		}
	}
	for _, p := range t.Parameters("encoder.*.bias") {
		if len(p.Data) == u.units && p.Trainable {
			u.bias = p
		}
	}
	decoder := t.Parameters("decoder.*.weight")
	u.tied = len(decoder) == 0
	if !u.tied { // of the first layer with weights
		if p := decoder[0]; slices.Equal(p.Shape, []int{u.units, u.encoder.Shape[0]}) && p.Trainable {
			u.decoder = p
		}
	}
	return u, nil
}

var notOneDense = part.KeyError{Key: "encoder", Problem: "the hook needs an encoder with one layer with weights, a dense layer on the pixels"}

// suitable returns the encoder weight of a declared model. The error is for a model without single units or without a decoder; without
// says what a hook lacks then.
func suitable(m Declared, without string) (*Parameter, error) {
	encoder, err := reviveable(m.Parameters("encoder.*.weight"))
	switch {
	case err != nil:
		return nil, err
	case encoder.Shape[0] != m.Pixels:
		return nil, notOneDense
	case !m.Decodes:
		return nil, part.KeyError{Key: "decoder", Problem: without}
	}
	return encoder, nil
}

// reviveable returns the encoder weight whose units can be re-initialised; weights are all weights of the encoder.
func reviveable(weights []*Parameter) (*Parameter, error) {
	if len(weights) != 1 || len(weights[0].Shape) != 2 {
		return nil, notOneDense
	}
	if p := weights[0]; !p.Trainable {
		return nil, part.KeyError{Key: "freeze", Problem: p.Path + " is frozen: no unit can be re-initialised"}
	}
	return weights[0], nil
}

// draw sets the weights of the dead units to the directions, in order, and lists the units that have got one.
func (u *unitWeights) draw(dead []bool, next func() ([]float32, bool)) (drawn []int) {
	columns, rows := u.norm(u.encoder, dead), u.norm(u.decoder, dead)
	for unit, is := range dead {
		if !is {
			continue
		}
		x, ok := next()
		if !ok {
			break
		}
		length := math.Sqrt(squares(x, 0, 1, len(x)))
		if length == 0 {
			continue
		}
		drawn = append(drawn, unit)
		u.set(u.encoder, unit, func(i int) float32 { return float32(columns * float64(x[i]) / length) })
		u.set(u.bias, unit, func(int) float32 { return 0 })
		u.set(u.decoder, unit, func(i int) float32 { return float32(rows * float64(x[i]) / length) })
		for _, p := range u.perUnit {
			mean := u.mean(p, dead)
			u.set(p, unit, func(int) float32 { return mean })
		}
	}
	for _, p := range append([]*Parameter{u.encoder, u.bias, u.decoder}, u.perUnit...) {
		if p != nil {
			u.training.Project(p)
		}
	}
	return drawn
}

// scaleEncoder multiplies the encoder weights of units by a factor.
func (u *unitWeights) scaleEncoder(units []int, by float32) {
	for _, unit := range units {
		first, stride, _ := u.values(u.encoder, unit)
		u.set(u.encoder, unit, func(i int) float32 { return by * u.encoder.Data[first+i*stride] })
	}
	u.training.Project(u.encoder)
}

// values returns the location of a unit's values in p: n values, starting at index first, stride apart.
func (u *unitWeights) values(p *Parameter, unit int) (first, stride, n int) {
	n = len(p.Data) / u.units
	if p == u.decoder {
		return unit * n, 1, n
	}
	return unit, u.units, n
}

// set changes the values of a unit in p and sets their optimizer state to 0.
func (u *unitWeights) set(p *Parameter, unit int, value func(i int) float32) {
	if p == nil {
		return
	}
	first, stride, n := u.values(p, unit)
	u.training.Rewrite(p, func(values []float32) {
		for i := range n {
			values[first+i*stride] = value(i)
		}
	})
	for _, state := range p.State {
		if len(state) != len(p.Data) { // statistics of the whole parameter begin again
			clear(state)
			continue
		}
		for i := range n {
			state[first+i*stride] = 0
		}
	}
}

// norm returns the mean norm of the values of the living units, or of all units if all are dead.
func (u *unitWeights) norm(p *Parameter, dead []bool) float64 {
	if p == nil {
		return 0
	}
	sum, living := 0.0, 0
	all := !slices.Contains(dead, false)
	for unit, is := range dead {
		if all || !is {
			first, stride, n := u.values(p, unit)
			sum += math.Sqrt(squares(p.Data, first, stride, n))
			living++
		}
	}
	return sum / float64(living)
}

// mean returns the mean of the living units' values in p, which has one value per unit. If all units are dead, it is the mean
// over all.
func (u *unitWeights) mean(p *Parameter, dead []bool) float32 {
	sum, living := 0.0, 0
	all := !slices.Contains(dead, false)
	for unit, is := range dead {
		if all || !is {
			sum += float64(p.Data[unit])
			living++
		}
	}
	return float32(sum / float64(living))
}

func squares(values []float32, first, stride, n int) (sum float64) {
	for i := range n {
		v := float64(values[first+i*stride])
		sum += v * v
	}
	return sum
}

// atoms returns the weight whose values of a unit are its atom.
func (u *unitWeights) atoms() *Parameter { return cmp.Or(u.decoder, u.encoder) }

// atom is the atom of a unit, scaled to norm 1.
type atom struct {
	unit   int
	values []float32
}

// atom returns the atom of a unit; ok is false if it is 0.
func (u *unitWeights) atom(unit int) (a atom, ok bool) {
	weight := u.atoms()
	first, stride, n := u.values(weight, unit)
	norm := math.Sqrt(squares(weight.Data, first, stride, n))
	if norm == 0 {
		return atom{}, false
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(float64(weight.Data[first+i*stride]) / norm)
	}
	return atom{unit, values}, true
}

// subtract subtracts the direction v, of norm 1, from an atom as far as it contains it: w becomes w - min(max(0, w), (w·v) v).
func (u *unitWeights) subtract(unit int, v []float32) {
	weight := u.atoms()
	first, stride, n := u.values(weight, unit)
	along := 0.0
	for i := range n {
		along += float64(weight.Data[first+i*stride]) * float64(v[i])
	}
	rest := make([]float32, n)
	for i := range rest {
		w := weight.Data[first+i*stride]
		rest[i] = w - min(max(0, w), float32(along)*v[i])
	}
	u.set(weight, unit, func(i int) float32 { return rest[i] })
}

func (u *unitWeights) pixels(count int) []float32 {
	images := u.training.Images()
	pixels := make([]float32, count*images.Pixels())
	first := lists.Range(0, count)
	images.Batch(pixels, first)
	return pixels
}

// run calls f with the pixels and the code or output, which program computes, of each of the first images.
func (u *unitWeights) run(of Value, program Program, count int, f func(pixels, value []float32)) error {
	images := u.training.Images()
	width := images.Pixels()
	pixels := make([]float32, min(count, reviveBatch)*width)
	for from := 0; from < count; from += reviveBatch {
		indices := lists.Range(from, min(from+reviveBatch, count))
		x := pixels[:len(indices)*width]
		images.Batch(x, indices)
		values, err := program.Run(x, nil)
		if err != nil {
			return err
		}
		row := len(values) / len(indices)
		if of == Output && images.Holed() {
			values = slices.Clone(values)
			observed := images.Subset(indices).All()[data.ObservedColumn]
			for i, there := range observed {
				if there == 0 { // no error where nothing is known
					values[i] = x[i]
				}
			}
		}
		for i := range indices {
			f(x[i*width:(i+1)*width], values[i*row:(i+1)*row])
		}
	}
	return nil
}
