package layers

import "fmt"

// Block is implemented by layers that are made of other layers, which are declared under its key "layers". The parameters
// of the i-th have i and a dot in front of their names. What one of them refuses is an [InnerError].
type Block interface {
	Layer
	// Inner lists the layers, in order.
	Inner() []Layer
}

// InnerError is what does not fit about a layer of a block.
type InnerError struct {
	Index int
	Err   error
}

// Error implements error.
func (e InnerError) Error() string { return fmt.Sprintf("layers[%d]: %v", e.Index, e.Err) }

// Unwrap returns what the layer said.
func (e InnerError) Unwrap() error { return e.Err }
