package layers

import "gorgonia.org/gorgonia"

// Preparing is implemented by layers whose first part is a costly, fixed function of single images. Where such a layer is the first
// of an encoder, a hook of the training may compute that part once for every image: the graph then applies the rest only.
type Preparing interface {
	Layer
	// Preparation describes the first part. A hook recognises it by its type.
	Preparation() any
	// Rest is what Apply does to the result of the first part, which has the shape that OutputShape returns.
	Rest(s Scope, prepared *gorgonia.Node) (*gorgonia.Node, error)
}
