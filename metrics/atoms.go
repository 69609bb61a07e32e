package metrics

import (
	"fmt"

	"tessera/data/morph"
	"tessera/internal/volume"
)

// Apply returns the atoms after a flat morphological operator, atom by atom. The bias stays as it is: max-approximation
// operates on atoms only, unless it says otherwise.
func (a *Atoms) Apply(m Morphology) (*Atoms, error) {
	m = m.orDefault()
	values, err := morph.ApplyBy(m.Operator, m.Element, m.Radius, a.Values, a.Shape)
	if err != nil {
		return nil, fmt.Errorf("metrics: atoms: %w", err)
	}
	return &Atoms{Shape: a.Shape, Count: a.Count, Values: values, Bias: a.Bias}, nil
}

// ApplyToBias returns the same atoms with the operator applied to the bias, as one image; without a bias nothing changes.
func (a *Atoms) ApplyToBias(m Morphology) (*Atoms, error) {
	if a.Bias == nil {
		return a, nil
	}
	m = m.orDefault()
	bias, err := morph.ApplyBy(m.Operator, m.Element, m.Radius, a.Bias, a.Shape)
	if err != nil {
		return nil, fmt.Errorf("metrics: bias of the atoms: %w", err)
	}
	return &Atoms{Shape: a.Shape, Count: a.Count, Values: a.Values, Bias: bias}, nil
}

// Pixels returns the number of values of one atom.
func (a *Atoms) Pixels() int { return volume.Of(a.Shape) }

// check reports atoms whose slices do not fit their shape.
func (a *Atoms) check() error {
	pixels := a.Pixels()
	if len(a.Values) != a.Count*pixels {
		return fmt.Errorf("metrics: %d atoms of shape %v have %d values", a.Count, a.Shape, len(a.Values))
	}
	if a.Bias != nil && len(a.Bias) != pixels {
		return fmt.Errorf("metrics: the bias of atoms of shape %v has %d values", a.Shape, len(a.Bias))
	}
	return nil
}
