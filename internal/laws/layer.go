package laws

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/gradcheck"
	"tessera/internal/random"
	"tessera/layers"
)

// Layer is what every layer obeys, for inputs of 6 values in any shape that it takes.
var Layer = []Law[layers.Layer]{
	{"declares the shape of its output", outputShape},
	{"declares just the parameters it uses", parametersUsed},
	{"is deterministic at inference", deterministic},
	{"treats every image by itself at inference", imagewise},
	{"is the identity at inference if it is noisy", noiseless},
	{"says whether it is noisy", saysNoisy},
	{"draws new noise for every element", elementNoise},
	{"keeps its outputs in the range it declares", outputRange},
	{"is finite for large inputs, gradients included", layerFinite},
	{"has the right gradients, in a later run too", layerGradients},
	{"can be differentiated twice", layerCurvature},
}

// layerShapes are the input shapes of the laws.
var layerShapes = [][]int{{6}, {2, 3}, {3, 2, 1}, {1, 3, 2}}

// gradientShapes are those of the gradients, whose gate tries every value: images are large enough for windows to overlap.
var gradientShapes = [][]int{{6}, {2, 3}, {3, 4, 2}}

const layerValues, layerBatch = 6, 4

// taken are the input shapes that a layer does not refuse.
func taken(fresh func() layers.Layer) [][]int { return takenOf(fresh, layerShapes) }

func takenOf(fresh func() layers.Layer, shapes [][]int) [][]int {
	return slices.DeleteFunc(slices.Clone(shapes), func(in []int) bool {
		_, err := fresh().OutputShape(in)
		return err != nil
	})
}

// uniform returns n values of U(low, high).
func uniform(n int, low, high float64) []float32 {
	r := source()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(low + (high-low)*r.Float64())
	}
	return x
}

// applied returns the output of l for x, one image per layerValues values.
func applied(l layers.Layer, x []float32, in []int, training bool) ([]float32, []int, error) {
	return gradcheck.Evaluate(gradcheck.Layer(l, x, len(x)/layerValues, in, training))
}

func outputShape(fresh func() layers.Layer) error {
	if len(taken(fresh)) == 0 {
		_, err := fresh().OutputShape(layerShapes[0])
		return fmt.Errorf("takes no input: %v: %w", layerShapes[0], err)
	}
	for _, in := range taken(fresh) {
		for batch := 1; batch <= layerBatch; batch++ {
			given := slices.Clone(in)
			want, err := fresh().OutputShape(given)
			if err != nil {
				return fmt.Errorf("%v: %w", in, err)
			}
			if !slices.Equal(given, in) {
				return fmt.Errorf("%v: OutputShape turns its argument into %v", in, given)
			}
			_, shape, err := applied(fresh(), uniform(batch*layerValues, -1, 1), in, true)
			if err != nil {
				return fmt.Errorf("%v: %w", in, err)
			}
			if want := append([]int{batch}, want...); !slices.Equal(shape, want) {
				return fmt.Errorf("%v: output of shape %v, declared %v", in, shape, want)
			}
		}
	}
	return nil
}

func parametersUsed(fresh func() layers.Layer) error {
	for _, in := range taken(fresh) {
		names := map[string]bool{}
		for _, p := range fresh().Parameters(in) {
			if p.Name == "" || names[p.Name] {
				return fmt.Errorf("%v: parameter name %q is empty or used twice", in, p.Name)
			}
			names[p.Name] = true
			if p.Init == nil || p.FanIn < 1 || p.FanOut < 1 {
				return fmt.Errorf("%v: %s: initialisation %v with fans %d and %d", in, p.Name, p.Init, p.FanIn, p.FanOut)
			}
		}
		// Gorgonia refuses the gradient of what an expression does not reach; the scope refuses what is not declared.
		l := gradcheck.Layer(fresh(), uniform(layerValues, -1, 1), 1, in, true)
		g, err := gradcheck.Compile(gradcheck.Scalar(l), true)
		if err != nil {
			return fmt.Errorf("%v: %w", in, err)
		}
		if err := g.Close(); err != nil {
			return err
		}
	}
	return nil
}

func deterministic(fresh func() layers.Layer) error {
	x := uniform(layerBatch*layerValues, -1, 1)
	l := fresh()
	for _, in := range taken(fresh) {
		first, _, err := applied(l, x, in, false)
		if err != nil {
			return err
		}
		for _, again := range []layers.Layer{l, fresh()} {
			y, _, err := applied(again, x, in, false)
			if err != nil {
				return err
			}
			if err := differ(fmt.Sprintf("%v: applied again", in), y, first); err != nil {
				return err
			}
		}
	}
	return nil
}

func imagewise(fresh func() layers.Layer) error {
	x := uniform(layerBatch*layerValues, -1, 1)
	for _, in := range taken(fresh) {
		together, _, err := applied(fresh(), x, in, false)
		if err != nil {
			return err
		}
		outputs := len(together) / layerBatch
		for i := range layerBatch {
			alone, _, err := applied(fresh(), x[i*layerValues:(i+1)*layerValues], in, false)
			if err != nil {
				return err
			}
			for j, v := range alone {
				if w := together[i*outputs+j]; math.Abs(float64(v-w)) > 1e-6*(1+math.Abs(float64(v))) {
					return fmt.Errorf("%v: output %d of image %d is %v alone, %v in a batch", in, j, i, v, w)
				}
			}
		}
	}
	return nil
}

// noise returns the noise leaves of l's graph.
func noise(l layers.Layer, x []float32, in []int, training bool) ([]*gradcheck.Leaf[float32], error) {
	g, err := gradcheck.Compile(gradcheck.Layer(l, x, len(x)/layerValues, in, training), false)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(g.Leaves), func(l *gradcheck.Leaf[float32]) bool {
		return !strings.HasPrefix(l.Name, "noise")
	})
	return list, g.Close()
}

func noiseless(fresh func() layers.Layer) error {
	x := uniform(layerBatch*layerValues, -1, 1)
	for _, in := range taken(fresh) {
		left, err := noise(fresh(), x, in, false)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("%v: %d noise inputs at inference", in, len(left))
		}
		drawn, err := noise(fresh(), x, in, true)
		if err != nil {
			return err
		}
		if len(drawn) == 0 {
			continue
		}
		y, _, err := applied(fresh(), x, in, false)
		if err != nil {
			return err
		}
		if err := differ(fmt.Sprintf("%v: output of a noisy layer", in), y, x); err != nil {
			return err
		}
	}
	return nil
}

func saysNoisy(fresh func() layers.Layer) error {
	for _, in := range taken(fresh) {
		drawn, err := noise(fresh(), uniform(layerBatch*layerValues, -1, 1), in, true)
		if err != nil {
			return err
		}
		if says := layers.IsNoisy(fresh()); says != (len(drawn) > 0) {
			return fmt.Errorf("%v: %d noise inputs, yet Noisy is %v", in, len(drawn), says)
		}
	}
	return nil
}

// elementNoise wants noise of the input's size whose elements are not all alike.
func elementNoise(fresh func() layers.Layer) error {
	const images = 50
	x := uniform(images*layerValues, -1, 1)
	for _, in := range taken(fresh) {
		drawn, err := noise(fresh(), x, in, true)
		if err != nil {
			return err
		}
		for _, n := range drawn {
			if len(n.Values)%images != 0 {
				return fmt.Errorf("%v: %s has %d values for %d images", in, n.Name, len(n.Values), images)
			}
			per := len(n.Values) / images
			for i := 1; ; i++ {
				if i == images {
					return fmt.Errorf("%v: %s is the same for every image", in, n.Name)
				}
				if !slices.Equal(n.Values[:per], n.Values[i*per:(i+1)*per]) {
					break
				}
			}
		}
	}
	return nil
}

func outputRange(fresh func() layers.Layer) error {
	for _, in := range taken(fresh) {
		for _, within := range []layers.Interval{{Low: 0, High: 1}, {Low: -1, High: 1}, {Low: 0.3, High: 0.6}, {Low: -60, High: 60}, {Low: -9, High: -2}} {
			declared := layers.OutputRange(fresh(), within)
			if !(declared.Low <= declared.High) {
				return fmt.Errorf("range %v of inputs in %v", declared, within)
			}
			x := uniform(50*layerValues, within.Low, within.High)
			for _, training := range []bool{false, true} {
				y, _, err := applied(fresh(), x, in, training)
				if err != nil {
					return err
				}
				if err := inRange(y, declared); err != nil {
					return fmt.Errorf("inputs in %v: %w", within, err)
				}
			}
		}
	}
	return nil
}

func inRange(y []float32, i layers.Interval) error {
	for _, v := range y {
		v, room := float64(v), 1e-6*math.Abs(float64(v))
		if !(v >= i.Low-room && v <= i.High+room) {
			return fmt.Errorf("output %v, declared to lie in %v", v, i)
		}
	}
	return nil
}

func layerFinite(fresh func() layers.Layer) error {
	for _, in := range taken(fresh) {
		for _, v := range []float32{0, 1e-30, -1e-30, 20, -20, 100, -100, 1e4, -1e4} {
			x := slices.Repeat([]float32{v}, 2*layerValues)
			x[0] = -v
			l := gradcheck.Layer(fresh(), x, 2, in, true)
			y, _, err := gradcheck.Evaluate(l)
			if err != nil {
				return err
			}
			if err := allFinite(y); err != nil {
				return fmt.Errorf("inputs of %v: output %w", v, err)
			}
			if err := finiteGradients(gradcheck.Scalar(l)); err != nil {
				return fmt.Errorf("inputs of %v: %w", v, err)
			}
		}
	}
	return nil
}

// layerGradients holds a layer to the gradient gate, in float64 and in batches of 1, 2 and 5.
func layerGradients(fresh func() layers.Layer) error {
	return gradients(fresh, []int{1, 2, 5}, gradcheck.Scalar)
}

// layerCurvature holds the derivatives of a layer to the gate: penalties of a code's Jacobian differentiate them again.
func layerCurvature(fresh func() layers.Layer) error {
	return gradients(fresh, []int{2}, gradcheck.SquaredGradient)
}

// gradients holds what scalar makes of a layer to the gradient gate.
func gradients(fresh func() layers.Layer, batches []int, scalar func(gradcheck.Expression[float64]) gradcheck.Expression[float64]) error {
	shapes := takenOf(fresh, gradientShapes)
	if len(shapes) == 0 {
		return fmt.Errorf("takes none of the inputs %v", gradientShapes)
	}
	for _, in := range shapes {
		for _, batch := range batches {
			n := batch
			for _, d := range in {
				n *= d
			}
			x := gradcheck.Values[float64](n, layers.Everything, random.Stream(gradcheck.Seed, "input", 0))
			if err := gradcheck.Check(scalar(gradcheck.Layer(fresh(), x, batch, in, true))); err != nil {
				return fmt.Errorf("%d of %v: %w", batch, in, err)
			}
		}
	}
	return nil
}

func allFinite(values []float32) error {
	for i, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("element %d is %v", i, v)
		}
	}
	return nil
}

// finiteGradients differentiates a scalar expression and wants every derivative to be finite.
func finiteGradients(e gradcheck.Expression[float32]) error {
	g, err := gradcheck.Compile(e, true)
	if err != nil {
		return err
	}
	defer g.Close()
	if err := g.Run(); err != nil {
		return err
	}
	for _, l := range g.Leaves {
		if err := allFinite(l.Gradient()); err != nil {
			return fmt.Errorf("gradient of %s: %w", l.Name, err)
		}
	}
	return nil
}
