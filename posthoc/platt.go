package posthoc

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

// Platt is the name of [PlattScaling].
const Platt = "platt"

// PlattScaling computes a_k z_k + b_k. For two classes this is Platt's scaling, p = sigmoid(a (z_1 - z_0) + b); for more classes it is
// vector scaling.
//
// Sources: Platt, Probabilistic outputs for support vector machines, 1999; Guo et al., On calibration of modern neural networks,
// ICML 2017.
type PlattScaling struct {
	Scales []float64 `json:"scales"` // a of the formula, one for each class
	Biases []float64 `json:"biases"` // b of the formula, one for each class
}

var _ Linear = (*PlattScaling)(nil)

func init() {
	Registry.Register(Platt, "each logit has a factor and a summand of its class", func() Method { return &PlattScaling{} })
}

func (s *PlattScaling) Apply(logits []float32, classes int)   { applyLinear(s, logits, classes) }
func (s *PlattScaling) Linear(int) (scales, biases []float64) { return s.Scales, s.Biases }

func (s *PlattScaling) Check(classes int) error {
	return errors.Join(otherClasses(Platt, len(s.Scales), classes), otherClasses(Platt, len(s.Biases), classes),
		checkFinite(slices.Concat(s.Scales, s.Biases)...))
}

// Fit implements [Method]. It minimises the cross entropy of softmax(a_k z_k + b_k). For two classes, a is the same for both and b_0 is 0,
// which is Platt's p = sigmoid(a (z_1 - z_0) + b). The targets are Platt's, too: (n_1 + 1) / (n_1 + 2) and 1 / (n_0 +
// 2) instead of 1 and 0, where n_k is the number of samples of class k. For two classes the minimum therefore always
// exists. For more classes it does not exist if all samples are predicted correctly, which is an error.
func (s *PlattScaling) Fit(logits []float32, labels []int, classes int) error {
	p := plattProblem{logits, labels, classes, make([]float64, classes)}
	for _, class := range labels {
		p.counts[class]++
	}
	if missing := slices.Index(p.counts, 0); missing >= 0 { // nothing bounds its factor and its summand
		return fmt.Errorf("no sample is of class %d: it would get any probability; calibrate on more samples, or use temperature", missing)
	}
	start := slices.Concat(slices.Repeat([]float64{1}, classes), make([]float64, classes))
	if classes == 2 {
		start = []float64{1, 0}
	}
	r, err := optimize.Minimize(optimize.Problem{Func: p.value, Grad: p.gradient}, start,
		&optimize.Settings{GradientThreshold: 1e-9, MajorIterations: 2000}, &optimize.BFGS{})
	const separated = 1e-6 // a cross entropy below this value means that all samples are predicted correctly and the factors grow without bound
	if r == nil || r.F < separated || err != nil && norm(p.gradientAt(r.X)) > 1e-6 {
		return errors.New("the cross entropy of these samples has no minimum that is found: every sample may be predicted right; calibrate on more samples, or use temperature")
	}
	s.Scales, s.Biases = p.parameters(r.X)
	return nil
}

// plattProblem provides the objective and its gradient.
type plattProblem struct {
	logits  []float32
	labels  []int
	classes int
	counts  []float64 // number of samples of each class
}

// parameters returns the factors a and the summands b for the optimizer's variables x.
func (p *plattProblem) parameters(x []float64) (scales, biases []float64) {
	if p.classes == 2 {
		return []float64{x[0], x[0]}, []float64{0, x[1]}
	}
	return slices.Clone(x[:p.classes]), slices.Clone(x[p.classes:])
}

// target returns the target probability of class for a sample with the given label.
func (p *plattProblem) target(class, label int) float64 {
	if p.classes != 2 {
		if class == label {
			return 1
		}
		return 0
	}
	one := (p.counts[1] + 1) / (p.counts[1] + 2)
	if label == 0 {
		one = 1 / (p.counts[0] + 2)
	}
	if class == 1 {
		return one
	}
	return 1 - one
}

// each calls f for every sample with the logarithms of its probabilities.
func (p *plattProblem) each(x []float64, f func(i int, row []float32, logs []float64)) {
	scales, biases := p.parameters(x)
	logs := make([]float64, p.classes)
	for i := range p.labels {
		row, most, sum := p.logits[i*p.classes:(i+1)*p.classes], math.Inf(-1), 0.0
		for k, z := range row {
			logs[k] = scales[k]*float64(z) + biases[k]
			most = max(most, logs[k])
		}
		for _, v := range logs {
			sum += math.Exp(v - most)
		}
		for k := range logs {
			logs[k] -= most + math.Log(sum)
		}
		f(i, row, logs)
	}
}

func (p *plattProblem) value(x []float64) (sum float64) {
	p.each(x, func(i int, _ []float32, logs []float64) {
		for k, v := range logs {
			if t := p.target(k, p.labels[i]); t > 0 {
				sum -= t * v / float64(len(p.labels))
			}
		}
	})
	return sum
}

func (p *plattProblem) gradientAt(x []float64) []float64 {
	g := make([]float64, len(x))
	p.gradient(g, x)
	return g
}

func (p *plattProblem) gradient(g, x []float64) {
	clear(g)
	p.each(x, func(i int, row []float32, logs []float64) {
		for k, v := range logs {
			d := (math.Exp(v) - p.target(k, p.labels[i])) / float64(len(p.labels))
			if p.classes != 2 {
				g[k] += d * float64(row[k])
				g[p.classes+k] += d
				continue
			}
			g[0] += d * float64(row[k])
			if k == 1 {
				g[1] += d
			}
		}
	})
}

func norm(v []float64) (most float64) {
	for _, x := range v {
		most = max(most, math.Abs(x))
	}
	return most
}
