package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Concat is a block of layers with a skip connection that concatenates the input and the block's output,
//
//	y = (x, block(x))
//
// along the last axis: the channels of an image, whose height and width the block must preserve, or the units of a vector. An
// input (height, width) has one channel. To concatenate the features of tokens, reshape the tokens to (tokens, 1, features).
// A block that reduces the image and then enlarges it again is a U-Net; nested blocks are its levels. Parameters are named
// like those of [Residual]. Sources: Ronneberger, Fischer and Brox, U-Net, 2015; Huang, Liu, van der Maaten and Weinberger,
// Densely connected convolutional networks, 2017.
type Concat struct {
	Layers []Layer `toml:"layers" doc:"layers of the block, in order; the block must keep height and width" required:"true"`
}

func init() {
	Registry.Register("concat", "a block of layers with a skip connection, y = (x, block(x)) along channels or units", func() Layer { return &Concat{} })
}

// Check returns an error for an empty block.
func (l *Concat) Check() error { return notEmpty(l.Layers) }

func (l *Concat) Inner() []Layer { return l.Layers }

func (l *Concat) OutputShape(in []int) ([]int, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	shapes, err := StackShapes(l.Layers, in)
	if err != nil {
		return nil, err
	}
	out := shapes[len(l.Layers)]
	x, y := withChannels(in), withChannels(out)
	last := len(x) - 1
	if len(in) == 2 && len(out) == 2 && in[0] == out[0] && in[1] != out[1] {
		return nil, part.KeyErrorf("layers", "the block turns shape %v into %v; both are read as images of one channel: to join tokens, reshape them to [%d 1 %d] first",
			in, out, in[0], in[1])
	}
	if len(x) != len(y) || !slices.Equal(x[:last], y[:last]) {
		return nil, part.KeyErrorf("layers", "the block turns shape %v into %v, want the same but for the last axis", in, out)
	}
	return append(slices.Clone(x[:last]), x[last]+y[last]), nil
}

// withChannels returns shape with an axis of channels: an image (height, width) has one channel.
func withChannels(shape []int) []int {
	if len(shape) == 2 {
		return []int{shape[0], shape[1], 1}
	}
	return shape
}

func (l *Concat) Parameters(in []int) []Parameter { return StackParameters(l.Layers, in) }
func (l *Concat) Publishes(in []int) []Value      { return StackPublishes(l.Layers, in) }

func (l *Concat) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	in := x.Shape()[1:]
	out, err := l.OutputShape(in)
	if err != nil {
		return nil, err
	}
	y, err := ApplyStack("concat", l.Layers, s, x)
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	places := x.Shape()[0] * volume.Of(out[:len(out)-1])
	rows := func(n *gorgonia.Node) *gorgonia.Node { return c.Reshape(n, places, n.Shape().TotalSize()/places) }
	joined := c.Do("join", func() (*gorgonia.Node, error) { return ops.Join(rows(x), rows(y)) })
	return c.Reshape(joined, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

func (l *Concat) OutputRange(in Interval) Interval {
	out := StackRange(l.Layers, in)
	return Interval{min(in.Low, out.Low), max(in.High, out.High)}
}
