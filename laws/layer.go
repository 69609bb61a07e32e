package laws

import (
	"fmt"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// Layer contains the laws of layers: for every accepted input of layerShapes, in batches of 1, 2 and 5, at inference and in
// training, on both back ends, in float64, in a first and a second run of the compiled program.
var Layer Kit[layers.Layer] = trials[layers.Layer, layerTrial]{each: eachLayerTrial, laws: []trialLaw[layerTrial]{
	{"declares the shape of its output", layerTrial.outputShape},
	{"declares just the parameters it uses", layerTrial.parametersUsed},
	{"moves nothing but its state, and that in training only", layerTrial.movesState},
	{"is deterministic, given its noise", layerTrial.deterministic},
	{"treats every image by itself at inference", layerTrial.imagewise},
	{"is the identity at inference if it is noisy", layerTrial.noiseless},
	{"says whether it is noisy", layerTrial.saysNoisy},
	{"draws new noise for every image and run", layerTrial.freshNoise},
	{"keeps its outputs in the range it declares", layerTrial.outputRange},
	{"is finite for large inputs, gradients included", layerTrial.finite},
	{"has the right gradients", layerTrial.gradients},
	{"can be differentiated twice", layerTrial.curvature},
	{"keeps nothing of one run for the next", layerTrial.forgets},
	{"gives the same on both back ends", layerTrial.likeTape},
	{"gives on two processes what it gives on one", layerTrial.divided},
	{"gives in float32 what it gives in float64, rounded", layerTrial.rounds},
}}

// layerShapes are the input shapes of the trials, if a layer accepts them. Some images are large enough for overlapping
// windows; others have one row and one channel, or one column, and must not be confused with vectors.
var layerShapes = [][]int{{6}, {2, 3}, {4, 1}, {1, 3, 1}, {3, 4, 2}}

// layerTrial is one way to run a layer.
type layerTrial struct {
	stand
	fresh    func() layers.Layer
	in       []int
	batch    int
	training bool
}

func (t layerTrial) String() string {
	mode := "at inference"
	if t.training {
		mode = "in training"
	}
	return fmt.Sprintf("%d of %v %s on the %s", t.batch, t.in, mode, t.on)
}

func eachLayerTrial(fresh func() layers.Layer, try func(t layerTrial)) error {
	refused, taken := error(nil), false
	for _, in := range layerShapes {
		if _, err := fresh().OutputShape(slices.Clone(in)); err != nil {
			refused = err
			continue
		}
		taken = true
		for _, batch := range batches {
			for _, training := range modes(fresh, in, batch) {
				for _, on := range backends {
					try(newLayerTrial(fresh, in, batch, training, on))
				}
			}
		}
	}
	if !taken {
		return fmt.Errorf("takes none of the inputs %v: %w", layerShapes, refused)
	}
	return nil
}

// modes are inference, and training where it can differ: a layer that does not ask whether it trains builds the same graph.
func modes(fresh func() layers.Layer, in []int, batch int) []bool {
	t := layerTrial{fresh: fresh, in: in, batch: batch}
	built, err := gradcheck.Build(layerOn[float64](t, fresh()), false)
	if err == nil && !built.Modes {
		return []bool{false}
	}
	return []bool{false, true}
}

func newLayerTrial(fresh func() layers.Layer, in []int, batch int, training bool, on backend) layerTrial {
	t := layerTrial{fresh: fresh, in: in, batch: batch, training: training}
	t.stand = newStand(on,
		func(on backend) (bench[float64], error) { return layerBench[float64](t, fresh(), on) },
		func(on backend) (bench[float32], error) { return layerBench[float32](t, fresh(), on) })
	return t
}

func layerBench[T ir.Float](t layerTrial, l layers.Layer, on backend) (bench[T], error) {
	r, err := newRig(layerOn[T](t, l), on, t.training)
	return bench[T]{r, func(i int) tensors[T] { return tensors[T]{"input": images[T](t, i)} }}, err
}

// layerOn is the output of a layer for the images of the first run.
func layerOn[T ir.Float](t layerTrial, l layers.Layer) gradcheck.Expression[T] {
	return gradcheck.Layer(l, images[T](t, 0), t.batch, t.in, t.training)
}

// images draws the images of the i-th run.
func images[T ir.Float](t layerTrial, i int) []T {
	stream := random.Stream(gradcheck.Seed, "input", uint64(i))
	return converted[T](gradcheck.Values[float32](elements(t.batch, t.in), layers.Everything, stream))
}

// elements is the number of values of n tensors of that shape.
func elements(n int, shape []int) int { return n * volume.Of(shape) }
