package kernel

import (
	"math"
	"reflect"
	"testing"
)

// oracles contains the functions of one operand in float64.
var oracles = map[string]func(float64) float64{
	"Exp": math.Exp, "Expm1": math.Expm1, "Log": math.Log, "Log1p": math.Log1p, "Sigmoid": sigmoid, "Tanh": math.Tanh,
	"Softplus": softplus, "Sqrt": math.Sqrt, "Abs": math.Abs, "Sign": sign[float64],
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"InvSqrt":    func(x float64) float64 { return 1 / math.Sqrt(x) },
	"Square":     func(x float64) float64 { return x * x },
	"Cube":       func(x float64) float64 { return x * x * x },
	"Neg":        func(x float64) float64 { return -x },
	"ExpRounded": math.Exp, "NormalCDF": normalCDF, "NormalPDF": normalPDF,
}

// ulps returns the distance of got from want, in units in the last place of float32 at want. It is 0 if both are the
// same NaN, infinity or signed zero, and infinite if only one of them is.
func ulps(got float32, want float64) float64 {
	rounded := float32(want)
	switch {
	case want != want:
		if got != got {
			return 0
		}
		return math.Inf(1)
	case math.Float32bits(got) == math.Float32bits(rounded):
		return math.Min(0.5, math.Abs(float64(got)-want)/spacing(want))
	case math.IsInf(float64(rounded), 0) != math.IsInf(float64(got), 0), got == 0 && rounded == 0:
		if math.Abs(want) > math.MaxFloat32*0.9999999 && math.Abs(float64(got)) >= math.MaxFloat32 && want*float64(got) > 0 {
			return 1 // at the limit of overflow
		}
		return math.Inf(1)
	}
	return math.Abs(float64(got)-want) / spacing(want)
}

// spacing returns the distance between neighbouring float32 numbers at x.
func spacing(x float64) float64 {
	_, exponent := math.Frexp(x)
	return math.Ldexp(1, max(exponent-24, -149))
}

// inputsOfAllSizes returns every stride-th float32 number, the neighbours of the powers of two, and some edges.
func inputsOfAllSizes(stride uint64) (inputs []float32) {
	for bits := uint64(0); bits < 1<<32; bits += stride {
		inputs = append(inputs, math.Float32frombits(uint32(bits)))
	}
	for exponent := uint32(0); exponent < 256; exponent++ {
		for d := uint32(0); d < 4; d++ {
			for _, bits := range []uint32{exponent<<23 + d, exponent<<23 - d} {
				inputs = append(inputs, math.Float32frombits(bits), math.Float32frombits(bits^1<<31))
			}
		}
	}
	for _, x := range []float32{88.72283, -87.33654, -103.97208, -104, 9.01, 17.3, -17.3, 0.6931472, 0.6666667, 1.3333334, 0.33333334, -0.33333334} {
		for d := int32(-20); d <= 20; d++ {
			inputs = append(inputs, math.Float32frombits(uint32(int32(math.Float32bits(x))+d)))
		}
	}
	return inputs
}

func TestFunctionsStayWithinTheirBounds(t *testing.T) {
	stride := uint64(8209) // a prime, so that every exponent and many mantissas occur
	if raceEnabled {       // the oracles are slow under the race detector
		stride = 104729
	}
	inputs := inputsOfAllSizes(stride)
	got := make([]float32, len(inputs))
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			oracle, ok := oracles[k.field]
			if !ok {
				if isUnary(set, k.field) {
					t.Errorf("%s has no oracle", k.field)
				}
				continue
			}
			bound := max(0.5, functionBounds[k.field])
			k.run(got, [3][]float32{inputs}, 0, 0)
			worst, at := 0.0, float32(0)
			for i, x := range inputs {
				if d := ulps(got[i], oracle(float64(x))); d > worst {
					worst, at = d, x
				}
			}
			t.Logf("%s %s: at most %.3f ulp (at %v)", set.Name, k.field, worst, at)
			if worst > bound {
				t.Errorf("%s %s(%v = %#x) is %v ulp off, bound %v", set.Name, k.field, at, math.Float32bits(at), worst, bound)
			}
		}
	}
}

func isUnary(set *Set[float32], field string) bool {
	_, ok := reflect.ValueOf(set).Elem().FieldByName(field).Interface().(Unary[float32])
	return ok
}

func TestInstructionSetsAgreeToTheBit(t *testing.T) {
	var vector []*Set[float32]
	for _, set := range elementwiseSets() {
		if set.Name == "avx512" || set.Name == "avx2" {
			vector = append(vector, set)
		}
	}
	if len(vector) < 2 {
		return // there is only one instruction set
	}
	inputs := inputsOfAllSizes(65537)
	x, y := make([]float32, len(inputs)), make([]float32, len(inputs))
	other := invocations(vector[1])
	for i, k := range invocations(vector[0]) {
		if k.reduces {
			continue // the instruction sets reduce in different numbers of lanes
		}
		k.run(x, [3][]float32{inputs, inputs, inputs}, 0.3, 0.7)
		other[i].run(y, [3][]float32{inputs, inputs, inputs}, 0.3, 0.7)
		for j := range x {
			if !agree(x[j], y[j], 0) {
				t.Fatalf("%s(%v) is %v with %s and %v with %s", k.field, inputs[j], x[j], vector[0].Name, y[j], vector[1].Name)
			}
		}
	}
}
