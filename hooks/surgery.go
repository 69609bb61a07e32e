package hooks

import (
	"slices"

	"tessera/config/part"
	"tessera/optim"
)

// Surgery is gradient surgery (PCGrad). If the gradients of two loss terms conflict, each step removes from one gradient its
// component along the other. Let g_i be the gradient of the weighted term i. Starting with p_i = g_i, for every other term j
// in random order, if the inner product of p_i and g_j is negative, then
//
//	p_i <- p_i - (p_i·g_j / |g_j|²) g_j
//
// The step uses the sum of all p_i plus the unchanged gradients of the terms that the key terms does not name. Inner products
// are over the parameters that both terms depend on. The gradients require one backward pass per term. Without conflicts the
// hook changes nothing.
//
// Source: Yu et al., Gradient surgery for multi-task learning, 2020.
type Surgery struct {
	Terms []string `toml:"terms" optional:"true" doc:"names of the loss terms whose gradients are compared; all of them by default"`
}

func init() {
	Registry.Register("surgery", "removes from the gradient of every loss term what works against another term", func() Hook { return &Surgery{} })
}

func (h *Surgery) Separates() []string { return h.Terms }

func (h *Surgery) Suits(m Declared) error {
	n := len(slices.Compact(slices.Sorted(slices.Values(h.Terms))))
	if len(h.Terms) == 0 {
		n = m.Terms
	}
	if n < 2 {
		return part.KeyErrorf("terms", "got %d, want at least 2 loss terms whose gradients are compared", n)
	}
	return nil
}

func (*Surgery) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps whose gradients could be replaced", "remove the hook"
}

// Replicated implements [Replicated]: all processes have the same gradients.
func (*Surgery) Replicated() (state bool) { return false }

func (h *Surgery) Attach(t Training) (*Active, error) {
	var sums, p [][]float32 // buffers for the changed gradients and for p_i
	return &Active{Gradients: func(g *Gradients) error {
		terms := slices.DeleteFunc(slices.Clone(g.Terms), func(of TermGradient) bool {
			return len(h.Terms) > 0 && !slices.Contains(h.Terms, of.Term)
		})
		if sums == nil {
			sums, p = make([][]float32, len(g.Of)), make([][]float32, len(g.Of))
		}
		refill(sums, g.Values)
		random := t.Random(t.Step())
		for i, of := range terms {
			refill(p, of.Values)
			for _, j := range random.Perm(len(terms)) {
				if product, square := products(p, terms[j].Values); j != i && product < 0 {
					addTo(p, terms[j].Values, -product/square)
				}
			}
			addTo(p, of.Values, -1) // 0 without a conflict
			addTo(sums, p, 1)
		}
		for k, v := range g.Values {
			if v != nil {
				g.Values[k] = sums[k]
			}
		}
		return nil
	}}, nil
}

// refill copies values to into. A nil list becomes an empty one.
func refill(into, values [][]float32) {
	for k, v := range values {
		into[k] = append(into[k][:0], v...)
	}
}

// products returns the inner product of a and b, and of b and b, over the parameters for which both have values.
func products(a, b [][]float32) (product, square float64) {
	for k, v := range b {
		if len(a[k]) == 0 {
			continue
		}
		square += optim.SquareSum(v)
		for e, x := range v {
			product += float64(a[k][e]) * float64(x)
		}
	}
	return product, square
}

// addTo adds times b to a, for the parameters for which both have values.
func addTo(a, b [][]float32, times float64) {
	for k, v := range b {
		if len(a[k]) == 0 {
			continue
		}
		for e, x := range v {
			a[k][e] += float32(times * float64(x)) // times may be too large for float32 where b is almost 0
		}
	}
}
