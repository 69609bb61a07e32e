package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// Activation is a layer without parameters that applies a function to each element, or to each row, as softmax does. A name,
// as in `activation = "sigmoid"`, selects the activation with its default settings.
type Activation interface {
	Layer
	Ranged
	// Activate applies the function to x, whose first axis is the batch.
	Activate(x *gorgonia.Node) (*gorgonia.Node, error)
}

// ActivationName is a setting that names a registered activation.
type ActivationName string

// Choices lists the registered activations.
func (ActivationName) Choices() []string {
	var names []string
	for _, e := range Registry.All() {
		if _, ok := e.New().(Activation); ok {
			names = append(names, e.Name)
		}
	}
	return names
}

// Activation returns the named activation with its default settings.
func (n ActivationName) Activation() (Activation, error) {
	if e, ok := Registry.Lookup(string(n)); ok {
		if a, ok := e.New().(Activation); ok {
			return a, nil
		}
	}
	return nil, fmt.Errorf("unknown activation %q", string(n))
}

// isLinear reports whether the named activation is the identity.
func (n ActivationName) isLinear() bool {
	activation, err := n.Activation()
	if err != nil {
		return false
	}
	_, linear := activation.(*Linear)
	return linear
}

// outputRange returns the range of the named activation over all inputs.
func (n ActivationName) outputRange() Interval {
	activation, err := n.Activation()
	if err != nil {
		return Everything
	}
	return activation.OutputRange(Everything)
}

// pointwise is embedded by layers that preserve the shape and have no parameters.
type pointwise struct{}

func (pointwise) OutputShape(in []int) ([]int, error) { return in, nil }
func (pointwise) Parameters([]int) []Parameter        { return nil }
