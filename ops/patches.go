package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
)

// Patching cuts images (Height, Width, Channels) into adjacent square patches of Size x Size pixels: tokens (Height/Size *
// Width/Size, Size*Size*Channels). Patches are ordered row by row, and so are the pixels of a patch, with channels last.
// The two ops below only move values; each is the inverse and the derivative of the other.
type Patching struct {
	Height, Width, Channels int
	Size                    int
}

// CutPatchesOp is the spec of [Patching.Cut], JoinPatchesOp of [Patching.Join].
type (
	CutPatchesOp  Patching
	JoinPatchesOp Patching
)

// Check returns an error for an invalid geometry.
func (p Patching) Check() error {
	if p.Height < 1 || p.Width < 1 || p.Channels < 1 || p.Size < 1 {
		return fmt.Errorf("patches: %+v: every size must be > 0", p)
	}
	if p.Height%p.Size != 0 || p.Width%p.Size != 0 {
		return fmt.Errorf("patches of %d pixels do not divide images of %d x %d", p.Size, p.Height, p.Width)
	}
	return nil
}

// Tokens is the number of patches of an image.
func (p Patching) Tokens() int { return (p.Height / p.Size) * (p.Width / p.Size) }

// Features is the number of values of a patch.
func (p Patching) Features() int { return p.Size * p.Size * p.Channels }

// Cut returns the tokens (batch, tokens, features) of images x, of any shape with (batch) first.
func (p Patching) Cut(x *gorgonia.Node) (*gorgonia.Node, error) {
	return p.move(x, CutPatchesOp(p), tensor.Shape{p.Tokens(), p.Features()}, p.Join,
		movePatches[float32](p, false), movePatches[float64](p, false))
}

// Join returns the images (batch, Height, Width, Channels) of tokens x.
func (p Patching) Join(x *gorgonia.Node) (*gorgonia.Node, error) {
	return p.move(x, JoinPatchesOp(p), tensor.Shape{p.Height, p.Width, p.Channels}, p.Cut,
		movePatches[float32](p, true), movePatches[float64](p, true))
}

// move adds the op whose output are images, or tokens, of shape out; back is its inverse.
func (p Patching) move(x *gorgonia.Node, spec any, out tensor.Shape, back unary, f32 units[float32], f64 units[float64]) (*gorgonia.Node, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) < 2 || s[1:].TotalSize() != out.TotalSize() {
		return nil, fmt.Errorf("patches: got shape %v, want (batch) and %d values", s, out.TotalSize())
	}
	o := &Unitwise{
		Spec:     spec,
		Out:      append(tensor.Shape{s[0]}, out...),
		Units:    s[0],
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  f32,
		Float64:  f64,
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := back(grad)
			if err == nil && !slices.Equal(g.Shape(), s) {
				g, err = Reshape(g, s...)
			}
			return gorgonia.Nodes{g}, err
		},
	}
	return o.Apply(x)
}

// movePatches copies images [from, to) to their tokens, or back.
func movePatches[T Float](p Patching, back bool) units[T] {
	line, run, image := p.Width*p.Channels, p.Size*p.Channels, p.Height*p.Width*p.Channels
	return func(dst []T, in [][]T, _ []T, from, to int) {
		tokens := from * image // offset of the next run of a patch
		for b := from; b < to; b++ {
			for top := b * image; top < (b+1)*image; top += p.Size * line {
				for left := top; left < top+line; left += run {
					for row := range p.Size {
						pixels := left + row*line
						if back {
							copy(dst[pixels:pixels+run], in[0][tokens:])
						} else {
							copy(dst[tokens:tokens+run], in[0][pixels:])
						}
						tokens += run
					}
				}
			}
		}
	}
}
