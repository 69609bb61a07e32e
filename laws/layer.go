package laws

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/engine/ir"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// Layer contains the laws of layers: for every accepted input of the shapes (6), (2, 3), (4, 1), (1, 3, 1) and (3, 4, 2), in
// batches of 1 and 3, at inference and in training, on both back ends, in float64, in two runs of the compiled program.
var Layer = LayerOf(layerShapes...)

// LayerOf returns the laws of [Layer] for layers that accept only inputs of other shapes. The inputs of a [layers.Indexing]
// layer are whole numbers. A value that a [layers.Reader] reads has the shape of the input, and the parameter that a
// [layers.Borrower] borrows is a matrix with as many columns as the input has values, unless the test calls Receive or Lend.
func LayerOf(shapes ...[]int) Kit[layers.Layer] {
	return inTrials(func(fresh func() layers.Layer, try func(t layerTrial)) error {
		return eachLayerTrial(shapes, fresh, try)
	}, layerLaws)
}

var layerLaws = []law[layerTrial]{
	{"declares the shape of its output", layerTrial.outputShape},
	{"declares just the parameters it uses", layerTrial.parametersUsed},
	{"changes nothing but its state, and that in training only", layerTrial.changesState},
	{"is deterministic, given its noise", layerTrial.deterministic},
	{"treats every image by itself at inference", layerTrial.imagewise},
	{"draws no noise at inference", layerTrial.noiseless},
	{"says whether it is noisy", layerTrial.saysNoisy},
	{"draws new noise for every image and run", layerTrial.freshNoise},
	{"keeps its outputs in the range it declares", layerTrial.outputRange},
	{"gives values of its input, unchanged, if it rearranges them", layerTrial.rearranges},
	{"is finite for large inputs, gradients included", layerTrial.finite},
	{"has the right gradients", layerTrial.gradients},
	{"can be differentiated twice", layerTrial.curvature},
	{"has no memory of earlier runs", layerTrial.forgets},
	{"gives the same on both back ends", layerTrial.likeTape},
	{"gives on two processes what it gives on one", layerTrial.divided},
	{"gives in float32 what it gives in float64, rounded", layerTrial.rounds},
}

// layerShapes are the input shapes of the trials, if a layer accepts them. Some images are large enough for overlapping
// windows; others have one row and one channel, or one column, and must not be confused with vectors.
var layerShapes = [][]int{{6}, {2, 3}, {4, 1}, {1, 3, 1}, {3, 4, 2}}

// layerTrial is one way to run a layer.
type layerTrial struct {
	stand
	layer    layers.Layer // layer of stand.double
	fresh    func() layers.Layer
	in       []int
	batch    int
	training bool
	alone    func() (*rig, error) // compiles the layer for one image at inference, on the same back end
}

func (t layerTrial) String() string {
	mode := "at inference"
	if t.training {
		mode = "in training"
	}
	return fmt.Sprintf("%d of %v %s on the %s", t.batch, t.in, mode, t.on)
}

func eachLayerTrial(shapes [][]int, fresh func() layers.Layer, try func(t layerTrial)) error {
	refused, taken, made := error(nil), false, fresh
	for _, in := range shapes {
		fresh := func() layers.Layer { return connected(made(), in) }
		if _, err := fresh().OutputShape(slices.Clone(in)); err != nil {
			refused = err
			continue
		}
		taken = true
		alone := map[backend]func() (*rig, error){}
		for _, t := range newLayerTrials(fresh, in, 1, false) {
			alone[t.on] = t.double
		}
		for _, batch := range batches {
			for _, training := range modes(fresh, in, batch) {
				for _, t := range newLayerTrials(fresh, in, batch, training) {
					t.alone = alone[t.on]
					try(t)
				}
			}
		}
	}
	if !taken {
		return fmt.Errorf("takes none of the inputs %v: %w", shapes, refused)
	}
	return nil
}

// connected sets the shapes that a layer of a model gets from other layers, for inputs of shape in, unless it has them.
func connected(l layers.Layer, in []int) layers.Layer {
	if slices.ContainsFunc(layers.Readings(l), func(r layers.Reading) bool { return r.Shape == nil }) {
		layers.Receive(l, func(string) []int { return in })
	}
	if b, ok := l.(layers.Borrower); ok {
		if _, err := l.OutputShape(slices.Clone(in)); err != nil {
			b.Lend([]int{4, volume.Of(in)})
		}
	}
	return l
}

// modes lists the values of training to test: false, and true if training can differ. A layer that does not read the mode
// builds the same graph in both modes.
func modes(fresh func() layers.Layer, in []int, batch int) []bool {
	t := layerTrial{fresh: fresh, in: in, batch: batch}
	built, err := gradcheck.Build(layerOn[float64](t, fresh()), false)
	if err == nil && !built.Modes {
		return []bool{false}
	}
	return []bool{false, true}
}

// newLayerTrials returns the trials of a layer on all back ends.
func newLayerTrials(fresh func() layers.Layer, in []int, batch int, training bool) (all []layerTrial) {
	t := layerTrial{fresh: fresh, layer: fresh(), in: in, batch: batch, training: training}
	for _, s := range newStands(
		func(on backend) (*rig, error) { return t.compileLayer(t.layer, on, false) },
		func(on backend, single bool) (*rig, error) { return t.compileLayer(fresh(), on, single) },
	) {
		own := t
		own.stand = s
		all = append(all, own)
	}
	return all
}

func (t layerTrial) compileLayer(l layers.Layer, on backend, single bool) (*rig, error) {
	if single {
		return compile(layerOn[float32](t, l), on, t.training, t.data)
	}
	return compile(layerOn[float64](t, l), on, t.training, t.data)
}

// layerOn returns the output of a layer for the images of the first run.
func layerOn[T ir.Float](t layerTrial, l layers.Layer) gradcheck.Expression[T] {
	return gradcheck.Layer(l, converted[T](t.data(0)[gradcheck.Input]), t.batch, t.in, t.training)
}

// data draws the images of the i-th run.
func (t layerTrial) data(i int) tensors {
	stream := random.Stream(gradcheck.Seed, "input", uint64(i))
	return tensors{gradcheck.Input: t.valid(converted[float64](gradcheck.Values[float32](elements(t.batch, t.in), layers.Everything, stream)))}
}

// valid converts values to valid inputs of the layer: to whole numbers if the layer requires them.
func (t layerTrial) valid(x []float64) []float64 {
	if l, ok := t.fresh().(layers.Indexing); ok {
		for i, v := range x {
			x[i] = math.Mod(math.Floor(math.Abs(v)*10), float64(l.Indices()))
		}
	}
	return x
}

// elements returns the number of values of n tensors with the given shape.
func elements(n int, shape []int) int { return n * volume.Of(shape) }

func (t layerTrial) outputShape() error {
	given := slices.Clone(t.in)
	want, err := t.fresh().OutputShape(given)
	if err != nil {
		return err
	}
	if !slices.Equal(given, t.in) {
		return fmt.Errorf("OutputShape turns its argument into %v", given)
	}
	if l, ok := t.fresh().(layers.Shortening); ok && t.training {
		want = l.TrainingShape(slices.Clone(t.in))
	}
	b, err := t.double()
	if err != nil {
		return err
	}
	if want := append([]int{t.batch}, want...); !slices.Equal(b.shape, want) {
		return fmt.Errorf("output of shape %v, declared %v", b.shape, want)
	}
	return b.eachRun(func(_, got tensors) error {
		if n := len(got["output"]); n != elements(t.batch, want) {
			return fmt.Errorf("%d outputs, declared %d of shape %v", n, t.batch, want)
		}
		return nil
	})
}

// parametersUsed checks that the output depends on all trainable parameters, at inference and in training, and that state is
// used in one of the modes. Gorgonia returns an error for the gradient of an unused node; the scope panics for undeclared
// parameters.
func (t layerTrial) parametersUsed() error {
	if t.sameGraph() {
		return nil
	}
	list := t.fresh().Parameters(t.in)
	if err := wellDeclared(list); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, training := range []bool{false, true} {
		t.training = training
		built, err := gradcheck.Build(gradcheck.Scalar(layerOn[float64](t, t.fresh())), true)
		if err != nil {
			return err
		}
		for _, l := range built.Leaves {
			used[l.Name] = used[l.Name] || l.Used
		}
	}
	for _, p := range list {
		if !used[p.Name] {
			return fmt.Errorf("%s is declared and never used", p.Name)
		}
	}
	return nil
}

// sameGraph reports whether another trial has already tested the laws that read only the layer's graph, in both modes.
func (t layerTrial) sameGraph() bool { return t.on != onTape || t.training }

func wellDeclared(list []layers.Parameter) error {
	names := map[string]bool{}
	for _, p := range list {
		if p.Name == "" || names[p.Name] || strings.ContainsAny(p.Name, " \t\n") {
			return fmt.Errorf("parameter name %q is empty, used twice or contains a space", p.Name)
		}
		names[p.Name] = true
		if p.Init == nil {
			return fmt.Errorf("parameter %q: Init is nil: give what it starts with", p.Name)
		}
		if p.FanIn < 1 || p.FanOut < 1 {
			return fmt.Errorf("parameter %q: FanIn %d and FanOut %d, want > 0, also if Init ignores them", p.Name, p.FanIn, p.FanOut)
		}
	}
	return nil
}

func (t layerTrial) changesState() error {
	return t.eachRun(func(given, got tensors) error {
		for _, p := range t.fresh().Parameters(t.in) {
			after, read := got[p.Name+" after the run"]
			if !read || t.training && p.State {
				continue
			}
			if err := near(after, given[p.Name], 0); err != nil {
				return fmt.Errorf("%s after the run: %w", p.Name, err)
			}
		}
		return nil
	})
}

// deterministic compares two applications of a layer.
func (t layerTrial) deterministic() error {
	first, err := t.double()
	if err != nil {
		return err
	}
	again, err := t.compileLayer(t.layer, t.on, false)
	if err != nil {
		return err
	}
	given := first.given(0)
	want, err := first.run(given)
	if err != nil {
		return err
	}
	got, err := again.run(given)
	if err == nil {
		err = got.near(want, 0)
	}
	if err != nil {
		return fmt.Errorf("applied again: %w", err)
	}
	return nil
}

// imagewise compares the results for a batch with those for each image alone.
func (t layerTrial) imagewise() error {
	if t.training || t.batch == 1 {
		return nil
	}
	together, err := t.double()
	if err != nil {
		return err
	}
	alone, err := t.alone()
	if err != nil {
		return err
	}
	return together.eachRun(func(given, got tensors) error {
		for i := range t.batch {
			one, err := alone.run(together.ofImage(given, i, t.batch))
			if err != nil {
				return err
			}
			for _, name := range []string{"output", "gradient of " + gradcheck.Input} {
				if err := near(portion(got[name], i, t.batch), one[name], 1e-12); err != nil {
					return fmt.Errorf("%s of image %d in the batch, and alone: %w", name, i, err)
				}
			}
		}
		return nil
	})
}

// ofImage returns the inputs of a run that belong to the i-th of n images.
func (r *rig) ofImage(given tensors, i, n int) tensors {
	own := tensors{}
	for _, l := range r.leaves {
		if own[l.name] = given[l.name]; !l.parameter {
			own[l.name] = portion(given[l.name], i, n)
		}
	}
	return own
}

// portion returns the i-th of n equal parts of values.
func portion[T any](values []T, i, n int) []T {
	size := len(values) / n
	return values[i*size : (i+1)*size]
}

// inputRanges lists the intervals of pixel values that outputRange tests.
var inputRanges = []layers.Interval{{Low: 0, High: 1}, {Low: -1, High: 1}, {Low: 0.3, High: 0.6}, {Low: -60, High: 60}, {Low: -9, High: -2}}

// outputRange checks the declared range, also in float32 up to rounding, on images whose pixels reach the ends of inputRanges.
func (t layerTrial) outputRange() error {
	return t.inBoth(func(r *rig) error {
		for _, within := range inputRanges {
			declared := layers.OutputRange(t.fresh(), within)
			if !(declared.Low <= declared.High) {
				return fmt.Errorf("range %v of inputs in %v", declared, within)
			}
			for i := range runs {
				given := r.given(i)
				x := uniform(len(given[gradcheck.Input]), within.Low, within.High)
				x[0], x[1] = within.Low, within.High
				given[gradcheck.Input] = t.valid(x)
				got, err := r.run(given)
				if err == nil {
					err = bounded(got["output"], declared, r.epsilon)
				}
				if err != nil {
					return fmt.Errorf("run %d, of inputs in %v: %w", i+1, within, err)
				}
			}
		}
		return nil
	})
}

func (t layerTrial) rearranges() error {
	if _, ok := t.layer.(layers.Rearranging); !ok {
		return nil
	}
	return t.inBoth(func(r *rig) error {
		given := r.given(0)
		got, err := r.run(given)
		if err != nil {
			return err
		}
		for i, v := range got["output"] {
			if !slices.ContainsFunc(given[gradcheck.Input], func(x float64) bool { return math.Abs(x-v) <= r.epsilon*math.Abs(x) }) {
				return fmt.Errorf("output %d is %v, which is no value of the input", i, v)
			}
		}
		return nil
	})
}

func bounded(values []float64, by layers.Interval, tolerance float64) error {
	for i, v := range values {
		slack := tolerance * math.Abs(v)
		if !(v >= by.Low-slack && v <= by.High+slack) {
			return fmt.Errorf("output %d is %v, declared to lie in %v", i, v, by)
		}
	}
	return nil
}

// finite checks the results, also in float32, which overflows earlier. All pixels of an image have the same value, except for
// one pixel of the opposite sign.
func (t layerTrial) finite() error {
	return t.inBoth(func(r *rig) error {
		given := r.given(0)
		for i, v := range []float64{0, 1e-30, -1e-30, 20, -20, 100, -100, 1e4, -1e4} {
			given[gradcheck.Input] = slices.Repeat([]float64{v}, len(given[gradcheck.Input]))
			given[gradcheck.Input][0] = -v
			t.valid(given[gradcheck.Input])
			got, err := r.run(given)
			if err == nil {
				err = got.finite()
			}
			if err != nil {
				return fmt.Errorf("run %d, of inputs %v: %w", i+1, v, err)
			}
		}
		return nil
	})
}

// noises returns the inputs that the layer draws.
func (t layerTrial) noises() ([]*gradcheck.Leaf[float64], error) {
	built, err := gradcheck.Build(layerOn[float64](t, t.fresh()), false)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(built.Leaves, func(l *gradcheck.Leaf[float64]) bool { return l.Sampler == nil }), nil
}

func (t layerTrial) noiseless() error {
	if t.training {
		return nil
	}
	if left, err := t.noises(); err != nil {
		return err
	} else if len(left) > 0 {
		return fmt.Errorf("draws %d noise inputs", len(left))
	}
	return nil
}

func (t layerTrial) saysNoisy() error {
	if t.sameGraph() {
		return nil
	}
	t.training = true
	drawn, err := t.noises()
	if err != nil {
		return err
	}
	if says := layers.IsNoisy(t.fresh()); says != (len(drawn) > 0) {
		return fmt.Errorf("%d noise inputs, yet Noisy is %v", len(drawn), says)
	}
	return nil
}

// freshNoise checks that noise differs between images and runs. The number of images is so large that equal noise cannot be a
// coincidence.
func (t layerTrial) freshNoise() error {
	const images = 50
	if t.sameGraph() {
		return nil
	}
	t.training = true
	if drawn, err := t.noises(); err != nil || len(drawn) == 0 {
		return err
	}
	b, err := newLayerTrials(t.fresh, t.in, images, true)[0].double()
	if err != nil {
		return err
	}
	first, second := b.given(0), b.given(1)
	for _, l := range b.leaves {
		values := first[l.name]
		switch {
		case l.sampler == nil:
		case len(values)%images != 0:
			return fmt.Errorf("%s has %d values for %d images", l.name, len(values), images)
		case slices.Equal(values, slices.Repeat(portion(values, 0, images), images)):
			return fmt.Errorf("%s is the same for each of %d images", l.name, images)
		case slices.Equal(values, second[l.name]):
			return fmt.Errorf("%s is the same in run 1 and in run 2", l.name)
		}
	}
	return nil
}

// gradients applies the gradient check, which compiles separate programs for Gorgonia's tape machine, to a layer. Another
// law compares the engine with the tape machine.
func (t layerTrial) gradients() error { return t.checkGradients(gradcheck.Scalar) }

// curvature applies the gradient check to the derivatives of a layer: penalties of a code's Jacobian differentiate them
// again.
func (t layerTrial) curvature() error {
	if _, ok := t.fresh().(layers.Indexing); ok {
		return nil // its input has no gradient
	}
	return t.checkGradients(gradcheck.SquaredGradient)
}

// checkGradients applies the gradient check to a scalar function of the layer's output.
func (t layerTrial) checkGradients(scalar func(gradcheck.Expression[float64]) gradcheck.Expression[float64]) error {
	if t.on != onTape {
		return nil
	}
	return gradcheck.Check(scalar(layerOn[float64](t, t.fresh())))
}

func (t layerTrial) divided() error { return t.stand.divided(t.batch) }
