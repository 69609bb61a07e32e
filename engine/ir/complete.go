package ir

import (
	"errors"
	"fmt"
)

// complete reports an op that is none of this package's, or lacks what it needs: a function, a kernel, an implementation.
// Everything after it may ask the op for its text.
func complete(o Op) error {
	switch o := o.(type) {
	case nil:
		return errors.New("has no op")
	case Leaf, Constant, Reshape, Broadcast, Product, Transpose, AllGather:
	case Pointwise:
		return completeFunction(o.F)
	case Reduction:
		return want(o.F <= Largest, "has an unknown reducer, %d", uint8(o.F))
	case AllReduce:
		return want(o.F <= Largest, "has an unknown reducer, %d", uint8(o.F))
	case Blockwise:
		return want(o.Kernel != nil, "has no kernel")
	case Unitwise:
		return want(o.Kernel != nil, "has no kernel")
	case Foreign:
		return want(o.Run != nil, "has no implementation")
	default:
		return fmt.Errorf("has an op of type %T, want one of package ir", o)
	}
	return nil
}

func completeFunction(f Function) error {
	switch f := f.(type) {
	case nil:
		return errors.New("has no function")
	case Primitive:
		return want(f < Primitives, "has an unknown primitive, %d", uint8(f))
	case Elementwise:
		return want(f.Blocks != nil, "has no kernel")
	}
	return fmt.Errorf("has a function of type %T, want a Primitive or an Elementwise", f)
}
