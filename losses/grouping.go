package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Grouping is embedded by the terms that measure the dependence of a score on the group of a sample. Let s_j be unit j of the
// score, 1_g the indicator of group g, and w the weights of the samples, which add up to 1. There are two measures:
//
//	correlation   mean over j and g of cov(s_j, 1_g)² / (var(s_j) var(1_g) + 1e-4): linear dependence, in [0,1)
//	hsic          sum over g of u_g' K u_g,  u_g = w (1_g - share of g),  K_ik = exp(-|s_i - s_k|² / (2 bandwidth²)): any dependence
//
// Sources: Pearson's correlation; Gretton et al., Measuring statistical dependence with Hilbert-Schmidt norms, ALT 2005 (the
// biased estimate, with K Gaussian and L_ik = 1 in equal groups, 0 otherwise).
type Grouping struct {
	Measure   string  `toml:"measure" oneof:"correlation hsic" doc:"how dependence is measured"`
	Score     string  `toml:"score" oneof:"probabilities values" doc:"probabilities: the softmax of the units that on names; values: these units unchanged"`
	Groups    int     `toml:"groups" want:">= 2" doc:"number of groups in the column, 0, 1, ...; a sample with a negative group is ignored"`
	Bandwidth float64 `toml:"bandwidth" want:"> 0" doc:"bandwidth of the kernel of hsic"`
}

// correlationFloor keeps the derivative of a correlation finite for a score that is almost constant.
const correlationFloor = 1e-4

// newGrouping returns a Grouping with the default settings.
func newGrouping() Grouping {
	return Grouping{Measure: "correlation", Score: "probabilities", Groups: 2, Bandwidth: 0.2}
}

func (Grouping) On() string { return "class" }

// reads returns the inputs of a term with this measure; values are further values that it reads.
func (g Grouping) reads(values ...string) Reads {
	r := Reads{Per: Means, On: true, Against: "group", Groups: g.Groups, Values: values}
	if g.Measure == "hsic" {
		r.Per = Batch
	}
	return r
}

func (g Grouping) CheckUnits(units int) error {
	if g.Score == "probabilities" && units < 2 {
		return part.KeyErrorf("score", `got "probabilities" of 1 unit, whose softmax is 1; choose "values"`)
	}
	return nil
}

// score returns the score, (batch, units).
func (g Grouping) score(c *ops.Chain, v Values) *gorgonia.Node {
	s := c.Do("on", v.On)
	if g.Score == "probabilities" {
		return c.Softmax(s)
	}
	return s
}

// isClass returns the indicator of class k, (batch, 1), for classes x given as whole numbers.
func isClass(c *ops.Chain, x *gorgonia.Node, k int) *gorgonia.Node {
	return c.Clip(c.From(1, c.Abs(c.Shift(x, -float64(k)))), 0, 1)
}

// column returns the first value of every sample, (batch, 1).
func column(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node { return c.Columns(x, 0, 1) }

// members returns the indicator of each group, (batch, 1), and the indicator known of the samples that belong to any group.
func (g Grouping) members(c *ops.Chain, groups *gorgonia.Node) (of []*gorgonia.Node, known *gorgonia.Node) {
	for k := range g.Groups {
		one := isClass(c, groups, k)
		if of = append(of, one); known == nil {
			known = one
		} else {
			known = c.Add(known, one)
		}
	}
	return of, known
}

// dependence returns the measure for a score and the indicators of the groups. weights are the samples' weights, (batch, 1);
// their sum need not be 1.
func (g Grouping) dependence(c *ops.Chain, score *gorgonia.Node, of []*gorgonia.Node, weights *gorgonia.Node) *gorgonia.Node {
	if c.Err() != nil {
		return nil
	}
	n := score.Shape()[0]
	if n == 1 { // exactly, not up to rounding
		return c.Scale(c.Sum(score), 0)
	}
	inverse := c.Square(c.InvSqrt(c.Clip(c.Sum(weights, 0), 1e-6, 1e30)))
	w := c.MatMul(weights, c.Reshape(inverse, 1, 1)) // (batch, 1), adds up to 1
	row := c.Reshape(w, 1, n)
	mean := func(x *gorgonia.Node) *gorgonia.Node { return c.MatMul(row, x) } // (1, columns)
	centre := func(x *gorgonia.Node) *gorgonia.Node {
		m := mean(x)
		return c.SubRow(x, c.Reshape(m, x.Shape()[1]))
	}
	if len(of) == 2 && g.Measure == "correlation" {
		of = of[1:] // the other indicator is 1 minus it, and has the same correlation
	}
	var sum *gorgonia.Node
	add := func(x *gorgonia.Node) {
		if sum == nil {
			sum = x
		} else {
			sum = c.Add(sum, x)
		}
	}
	if g.Measure == "hsic" {
		kernel := g.kernel(c, score)
		for _, one := range of {
			u := c.Mul(w, centre(one))
			add(c.Sum(c.Mul(u, c.MatMul(kernel, u))))
		}
		return sum
	}
	centred := centre(score)
	variance := mean(c.Square(centred))
	for _, one := range of {
		member := centre(one)
		covariance := c.MatMul(c.Reshape(c.Mul(w, member), 1, n), centred)
		both := c.MatMul(mean(c.Square(member)), variance)
		add(c.Mean(c.Div(c.Square(covariance), c.Shift(both, correlationFloor))))
	}
	return c.Scale(sum, 1/float64(len(of)))
}

// kernel returns K, (batch, batch).
func (g Grouping) kernel(c *ops.Chain, score *gorgonia.Node) *gorgonia.Node {
	squares := c.Sum(c.Square(score), 1)
	products := c.Scale(c.MatMul(score, c.Transpose(score)), 2)
	distances := c.SubRow(c.Transpose(c.SubRow(products, squares)), squares) // -|s_i - s_k|²
	return c.Exp(c.Scale(distances, 1/(2*g.Bandwidth*g.Bandwidth)))
}
