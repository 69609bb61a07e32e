package ops

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/ir"
)

// Reshape returns x with another shape of equal size. Gorgonia's own result shares its memory with x without telling the
// tape machine, which then overwrites x, even a batch of images or a weight, when it computes in place; this one is safe.
func Reshape(x *gorgonia.Node, shape ...int) (*gorgonia.Node, error) {
	to := tensor.Shape(shape).Clone()
	if len(x.Shape()) == 0 || len(to) == 0 || x.Shape().TotalSize() != to.TotalSize() {
		return nil, fmt.Errorf("reshape: %v does not fit into %v", x.Shape(), to)
	}
	return gorgonia.ApplyOp(reshape{from: x.Shape().Clone(), to: to}, x)
}

// reshape copies a tensor into another shape.
type reshape struct{ from, to tensor.Shape }

var (
	_ ir.Described             = reshape{}
	_ gorgonia.SDOp            = reshape{}
	_ gorgonia.UsePreallocDoer = reshape{}
)

// IR implements [ir.Described].
func (reshape) IR() ir.Op { return ir.Reshape{} }

// Arity implements [gorgonia.Op].
func (reshape) Arity() int { return 1 }

// Type implements [gorgonia.Op].
func (r reshape) Type() hm.Type {
	a := hm.TypeVariable('a')
	if len(r.from) == len(r.to) {
		return hm.NewFnType(a, a)
	}
	return hm.NewFnType(gorgonia.TensorType{Dims: len(r.from), Of: a}, gorgonia.TensorType{Dims: len(r.to), Of: a})
}

// InferShape implements [gorgonia.Op].
func (r reshape) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return r.to.Clone(), nil }

// ReturnsPtr implements [gorgonia.Op].
func (reshape) ReturnsPtr() bool { return true }

// CallsExtern implements [gorgonia.Op].
func (reshape) CallsExtern() bool { return false }

// OverwritesInput implements [gorgonia.Op].
func (reshape) OverwritesInput() int { return -1 }

// WriteHash implements [gorgonia.Op].
func (r reshape) WriteHash(h hash.Hash) { fmt.Fprintf(h, "tessera.reshape %v %v", r.from, r.to) }

// Hashcode implements [gorgonia.Op].
func (r reshape) Hashcode() uint32 {
	h := fnv.New32a()
	r.WriteHash(h)
	return h.Sum32()
}

// String implements [fmt.Stringer].
func (r reshape) String() string { return fmt.Sprintf("reshape%v", r.to) }

// DiffWRT implements [gorgonia.SDOp].
func (reshape) DiffWRT(int) []bool { return []bool{true} }

// SymDiff implements [gorgonia.SDOp].
func (r reshape) SymDiff(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := Reshape(grad, r.from...)
	return gorgonia.Nodes{n}, err
}

// Do implements [gorgonia.Op].
func (r reshape) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("%v: got %d inputs, want 1", r, len(in))
	}
	dst := tensor.New(tensor.Of(in[0].Dtype()), tensor.WithShape(r.to.Clone()...))
	return r.UsePreallocDo(dst, in...)
}

// UsePreallocDo implements [gorgonia.UsePreallocDoer].
func (r reshape) UsePreallocDo(dst gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	var err error
	switch in[0].Dtype() {
	case tensor.Float32:
		err = copyElements[float32](dst, in[0])
	case tensor.Float64:
		err = copyElements[float64](dst, in[0])
	default:
		err = fmt.Errorf("got values of type %v, want float32 or float64", in[0].Dtype())
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	return dst, nil
}

func copyElements[T Float](dst, src gorgonia.Value) error {
	to, err := flat[T](dst)
	if err != nil {
		return err
	}
	from, err := flat[T](src)
	if err != nil {
		return err
	}
	if len(to) != len(from) {
		return errors.New("the value's size is not the node's")
	}
	copy(to, from)
	return nil
}
