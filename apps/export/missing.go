package export

import (
	"hash/fnv"

	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// filled returns x without its missing values, which are NaN or 0 in the mask, nil for none: the means of the training replace those of samples
// that no fitted sample lacks, 0 replaces the others. there is 1 for the values that x or a mean has, else 0.
func (r *Run) filled(m *ir.Module, x, mask *ir.Value, samples bool) (y, there *ir.Value) {
	point := func(f ir.Function, args ...*ir.Value) *ir.Value { return ir.Point(f, x.Shape, args...) }
	if there = point(ir.Eq, x, x); mask != nil { // NaN equals nothing
		there = point(ir.Mul, there, point(ir.Ne, mask, ir.Uniform(0, x.Shape)))
	}
	y = gated(there, x)
	if !samples || len(r.Means) == 0 {
		return y, there
	}
	n := volume.Of(x.Shape) / x.Shape[0]
	means, known := make([]float32, n), make([]float32, n)
	for k, mean := range r.Means {
		means[k], known[k] = float32(mean), 1
	}
	rows := []int{x.Shape[0], n}
	mean := ir.Reshaped(ir.Broadcasted(row(m, "data/means", means), rows), x.Shape)
	y = point(ir.Add, y, point(ir.Mul, mean, point(ir.Sub, ir.Uniform(1, x.Shape), there)))
	return y, point(ir.Maximum, there, ir.Reshaped(ir.Broadcasted(row(m, "data/known", known), rows), x.Shape))
}

// gated returns x where mask is above 0, else 0, also where x is NaN.
func gated(mask, x *ir.Value) *ir.Value {
	return ir.Point(ir.Elementwise{Blocks: gate{}}, x.Shape, mask, x)
}

// gate is the kernel of [ops.Gate].
type gate struct{}

func (gate) String() string   { return "gate" }
func (gate) Spec() any        { return ops.GateOp{} }
func (gate) Block([]int) int  { return 1 }
func (gate) Hashcode() uint32 { h := fnv.New32a(); h.Write([]byte("export.gate")); return h.Sum32() }

func (gate) Float32(dst []float32, in [][]float32, _ int) { open(dst, in[0], in[1]) }
func (gate) Float64(dst []float64, in [][]float64, _ int) { open(dst, in[0], in[1]) }

func open[T float32 | float64](dst, mask, x []T) {
	for i, there := range mask {
		if dst[i] = 0; there > 0 {
			dst[i] = x[i]
		}
	}
}
