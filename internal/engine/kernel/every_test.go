package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// invocation is one kernel of a set, called through its field. The operands are a, b, c and the scalars s, t. A
// reduction writes its result to dst[0].
type invocation[T Float] struct {
	field   string
	run     func(dst []T, x [3][]T, s, t T)
	inputs  int
	reduces bool
}

// invocations finds every kernel of a set that maps or reduces slices of T, by reflection. Kernels added later are
// therefore tested, too.
func invocations[T Float](set *Set[T]) (list []invocation[T]) {
	v := reflect.ValueOf(set).Elem()
	for i := range v.NumField() {
		k := invocation[T]{field: v.Type().Field(i).Name}
		switch f := v.Field(i).Interface().(type) {
		case Unary[T]:
			k.inputs, k.run = 1, func(dst []T, x [3][]T, _, _ T) { f(dst, x[0]) }
		case Binary[T]:
			k.inputs, k.run = 2, func(dst []T, x [3][]T, _, _ T) { f(dst, x[0], x[1]) }
		case Ternary[T]:
			k.inputs, k.run = 3, func(dst []T, x [3][]T, _, _ T) { f(dst, x[0], x[1], x[2]) }
		case func(dst []T, s T):
			k.run = func(dst []T, _ [3][]T, s, _ T) { f(dst, s) }
		case Scalar[T]:
			k.inputs, k.run = 1, func(dst []T, x [3][]T, s, _ T) { f(dst, x[0], s) }
		case Scalar2[T]:
			k.inputs, k.run = 1, func(dst []T, x [3][]T, s, t T) { f(dst, x[0], s, t) }
		case BinaryScalar[T]:
			k.inputs, k.run = 2, func(dst []T, x [3][]T, s, _ T) { f(dst, x[0], x[1], s) }
		case Reduce[T]:
			k.inputs, k.reduces, k.run = 1, true, func(dst []T, x [3][]T, _, _ T) { dst[0] = f(x[0]) }
		case Reduce2[T]:
			k.inputs, k.reduces, k.run = 2, true, func(dst []T, x [3][]T, _, _ T) { dst[0] = f(x[0], x[1]) }
		case string, Gemm[T], SparseGemm[T], func(dst []T, src []uint8):
			continue // other tests cover these
		default:
			panic(fmt.Sprintf("kernel of an unknown shape: %s %T", k.field, f))
		}
		list = append(list, k)
	}
	return list
}

// elementwiseSets returns the sets that differ in other kernels than the products.
func elementwiseSets() (list []*Set[float32]) {
	for _, set := range choice().sets32 {
		if !strings.HasPrefix(set.Name, "openblas") {
			list = append(list, set)
		}
	}
	return list
}

// functionBounds contains the error bounds of the functions in units in the last place, as documented in Set.
var functionBounds = map[string]float64{
	"Exp": 1.1, "Expm1": 2, "Log": 1, "Log1p": 2, "Sigmoid": 3, "Tanh": 3, "Softplus": 2, "InvSqrt": 1.5, "Cube": 1.5,
}

// tolerance returns the maximum difference between a kernel and the portable kernel on the given operands. For a
// function it is the sum of both error bounds. For a kernel that orders or fuses operations differently, it is a few
// roundings of the largest intermediate value. For all other kernels it is 0.
func tolerance(field string, want float64, x [3]float64, s, t float64) float64 {
	const eps = 0x1p-23
	if bound, ok := functionBounds[field]; ok {
		return (bound + 1) * spacing(want)
	}
	var size float64
	switch field {
	case "AddScaled":
		size = math.Abs(x[1]*s) + math.Abs(x[0])
	case "MulAdd":
		size = math.Abs(x[0]*x[1]) + math.Abs(x[2])
	default:
		return 0
	}
	if size > math.MaxFloat32 {
		return math.Inf(1) // if the product alone overflows, only a fused operation gives a finite sum
	}
	return eps*size + 0x1p-148
}

// agree reports whether got equals want, rounded to float32, up to the tolerance. NaN agrees with NaN, and overflow
// with overflow.
func agree(got, want float32, tolerance float64) bool {
	if want != want || got != got {
		return want != want && got != got || tolerance > math.MaxFloat32 || tolerance != tolerance
	}
	if got == want {
		return true
	}
	return math.Abs(float64(got)-float64(want)) <= tolerance || math.IsInf(tolerance, 1)
}

// edges lists numbers at which errors of kernels are likely.
var edges = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	0x1p-149, -0x1p-149, 0x1p-130, -0x1p-130, 0x1p-126, math.MaxFloat32, -math.MaxFloat32, 0.5, -0.5, 2, -2,
	88.8, -88.8, -104, 1e-10, -1e-10, 3e38, 0.99999994, 1.0000001, -0.99999994,
}

// sample fills x with random numbers. With wild, some of them are edges, and some have random bits.
func sample(r *rand.Rand, x []float32, wild bool) {
	for i := range x {
		switch {
		case wild && r.IntN(4) == 0:
			x[i] = edges[r.IntN(len(edges))]
		case wild && r.IntN(4) == 0:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = float32(r.NormFloat64() * math.Exp(r.NormFloat64()))
		}
	}
}

const canary = float32(-12345.678)

// compareWithPortable runs a kernel and the corresponding portable kernel on slices that start offset elements into a
// buffer. It also checks that the elements around dst are unchanged.
func compareWithPortable(t *testing.T, name string, k, reference invocation[float32], r *rand.Rand, n, offset int, wild bool) {
	t.Helper()
	var x [3][]float32
	for i := range x {
		x[i] = make([]float32, n+offset+i)[offset+i:]
		sample(r, x[i], wild)
	}
	s, u := float32(r.NormFloat64()), float32(r.NormFloat64())
	size := n
	if k.reduces {
		size = 1
	}
	buffer := make([]float32, size+40)
	for i := range buffer {
		buffer[i] = canary
	}
	got, want := buffer[20+offset%3:][:size], make([]float32, size)
	k.run(got, x, s, u)
	reference.run(want, x, s, u)
	for i := range got {
		var at [3]float64
		for q := range k.inputs {
			if i < n {
				at[q] = float64(x[q][i])
			}
		}
		limit := tolerance(k.field, float64(want[i]), at, float64(s), float64(u))
		if k.reduces {
			limit = foldTolerance(k.field, x)
		}
		if !agree(got[i], want[i], limit) {
			t.Fatalf("%s %s, n=%d, element %d of %v s=%v t=%v: %v, portable %v (tolerance %g)", name, k.field, n, i, at, s, u, got[i], want[i], limit)
		}
	}
	for i, v := range buffer {
		if (i < 20+offset%3 || i >= 20+offset%3+size) && v != canary {
			t.Fatalf("%s %s, n=%d: element %d outside dst was written", name, k.field, n, i-20-offset%3)
		}
	}
}

// foldTolerance returns a bound on the rounding error of a sum in float32, valid for every order of the summands.
func foldTolerance(field string, x [3][]float32) float64 {
	var size float64
	for i, a := range x[0] {
		a, b := math.Abs(float64(a)), math.Abs(float64(x[1][i]))
		switch field {
		case "Sum", "SumAbs":
			size += a
		case "SumSquares":
			size += a * a
		case "Dot":
			size += a * b
		case "SquaredDistance":
			size += (a + b) * (a + b)
		}
	}
	if size > math.MaxFloat32 {
		return math.Inf(1) // partial sums may overflow in some orders only
	}
	return 0x1p-24 * size * (8 + float64(len(x[0]))/32)
}

func TestEveryKernelAgreesWithThePortableOne(t *testing.T) {
	sizes := []int{127, 128, 129, 255, 256, 257, 1000}
	for n := range 71 {
		sizes = append(sizes, n)
	}
	reference := invocations(portable[float32]())
	for _, set := range elementwiseSets() {
		for i, k := range invocations(set) {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for _, n := range sizes {
				for offset := range 3 {
					compareWithPortable(t, set.Name, k, reference[i], r, n, offset, offset > 0)
				}
			}
		}
	}
}

func TestKernelsRunInPlace(t *testing.T) {
	for _, set := range elementwiseSets() {
		for i, k := range invocations(set) {
			if k.reduces || k.inputs == 0 {
				continue
			}
			for operand := range k.inputs {
				r := rand.New(rand.NewPCG(uint64(i), 8))
				var x [3][]float32
				for q := range x {
					x[q] = make([]float32, 133)
					sample(r, x[q], false)
				}
				want := make([]float32, 133)
				k.run(want, x, 0.5, 0.25)
				k.run(x[operand], x, 0.5, 0.25)
				for j := range want {
					if !agree(x[operand][j], want[j], 0) {
						t.Fatalf("%s %s into its operand %d: element %d is %v, want %v", set.Name, k.field, operand, j, x[operand][j], want[j])
					}
				}
			}
		}
	}
}

func TestKernelsStopAtTheShortestSlice(t *testing.T) {
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			for short := range k.inputs {
				x := [3][]float32{make([]float32, 50), make([]float32, 50), make([]float32, 50)}
				x[short] = x[short][:37]
				dst := make([]float32, 50)
				for i := range dst {
					dst[i] = canary
				}
				k.run(dst, x, 1, 2)
				for i := 37; i < 50; i++ {
					if dst[i] != canary {
						t.Fatalf("%s %s wrote element %d with operand %d only 37 long", set.Name, k.field, i, short)
					}
				}
			}
		}
	}
}

func TestDoublePrecisionIsComplete(t *testing.T) {
	for _, set := range choice().sets64 {
		single := invocations(portable[float32]())
		for i, k := range invocations(set) {
			a, b := []float64{0.25, -0.5, 3}, []float32{0.25, -0.5, 3}
			got, want := make([]float64, 3), make([]float32, 3)
			k.run(got, [3][]float64{a, {2, 3, 4}, {5, 6, 7}}, 0.5, 1.5)
			single[i].run(want, [3][]float32{b, {2, 3, 4}, {5, 6, 7}}, 0.5, 1.5)
			for j := range got {
				if d := math.Abs(got[j] - float64(want[j])); d > 1e-6*math.Abs(got[j]) {
					t.Errorf("%s %s: element %d is %v in float64 and %v in float32", set.Name, k.field, j, got[j], want[j])
				}
			}
		}
	}
}

func TestReductionsRepeatToTheByte(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	buffer := make([]float32, 3000)
	sample(r, buffer, false)
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			if !k.reduces {
				continue
			}
			var first float32
			for offset := range 16 { // the same numbers at different addresses
				x := make([]float32, 1016)[offset:]
				copy(x, buffer[:1000])
				var dst [1]float32
				k.run(dst[:], [3][]float32{x[:1000], x[:1000], nil}, 0, 0)
				if offset == 0 {
					first = dst[0]
				} else if dst[0] != first {
					t.Fatalf("%s %s: %v at offset %d, %v before", set.Name, k.field, dst[0], offset, first)
				}
			}
		}
	}
}

func TestBytesAreDividedBy255(t *testing.T) {
	src := make([]uint8, 256+33)
	for i := range src {
		src[i] = uint8(i)
	}
	for _, set := range elementwiseSets() {
		for n := range len(src) + 1 {
			dst := make([]float32, n+1)
			dst[n] = canary
			set.FromBytes(dst[:n], src)
			for i, v := range dst[:n] {
				if want := float32(src[i]) / 255; v != want {
					t.Fatalf("%s, n=%d: byte %d becomes %v, want %v", set.Name, n, src[i], v, want)
				}
			}
			if dst[n] != canary {
				t.Fatalf("%s, n=%d: wrote outside", set.Name, n)
			}
		}
	}
}
