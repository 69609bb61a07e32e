package layers

import "gorgonia.org/gorgonia"

// Preparing is implemented by layers that start with a costly, fixed function of single images. If the first layer of an
// encoder is Preparing, a training hook may compute that function once for every image; the graph then applies only Rest.
type Preparing interface {
	Layer
	// Preparation describes the fixed function. A hook recognises it by its type.
	Preparation() any
	// Rest applies the remaining computation to the result of the fixed function, which has the shape that OutputShape
	// returns.
	Rest(s Scope, prepared *gorgonia.Node) (*gorgonia.Node, error)
}
