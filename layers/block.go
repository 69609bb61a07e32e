package layers

import "fmt"

// Block is implemented by layers that contain other layers, declared under the key "layers". The names of the i-th inner
// layer's parameters have the prefix "i.". Errors of inner layers are wrapped in an [InnerError].
type Block interface {
	Layer
	// Inner lists the layers, in order.
	Inner() []Layer
}

// InnerError is the error of a layer in a block.
type InnerError struct {
	Index int
	Err   error
}

// Error implements error.
func (e InnerError) Error() string { return fmt.Sprintf("layers[%d]: %v", e.Index, e.Err) }

// Unwrap returns the layer's error.
func (e InnerError) Unwrap() error { return e.Err }
